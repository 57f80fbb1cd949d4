FROM python:3.11-slim
WORKDIR /app
COPY requirements/service.txt requirements/
RUN pip install --no-cache-dir --require-hashes -r requirements/service.txt
COPY pyproject.toml README.md LICENSE ./
COPY migrations migrations
COPY stream_app stream_app
RUN pip install --no-cache-dir --no-deps . && useradd --system --uid 10001 rapport
USER rapport
ENTRYPOINT ["rapport"]
