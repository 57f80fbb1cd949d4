# Two images that differ in REQUIREMENTS: `worker` (worker, notifier, migrations) and `web` (console
# and API, with analyses and practice). `docker compose build` makes both.
FROM python:3.11-slim AS wheel
WORKDIR /src
COPY requirements/build.txt ./
RUN pip install --no-cache-dir --require-hashes -r build.txt
COPY pyproject.toml README.md LICENSE LICENSE-MODEL-WEIGHTS.md ./
COPY migrations migrations
COPY stream_app stream_app
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels .

FROM python:3.11-slim AS service
ARG REQUIREMENTS
COPY requirements/${REQUIREMENTS}.txt /requirements.txt
RUN pip install --no-cache-dir --require-hashes -r /requirements.txt
RUN --mount=from=wheel,source=/wheels,target=/wheels pip install --no-cache-dir --no-deps /wheels/*.whl \
 && useradd --system --uid 10001 rapport
USER rapport
ENTRYPOINT ["rapport"]
