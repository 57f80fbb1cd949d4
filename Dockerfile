# Images that differ in REQUIREMENTS: `worker` (worker, notifier, migrations) and `web` (console and
# API, with analyses and practice), which `docker compose build` makes, and `gpu` (workers with CUDA).
FROM python:3.11.14-slim@sha256:c8271b1f627d0068857dce5b53e14a9558603b527e46f1f901722f935b786a39 AS wheel
WORKDIR /src
COPY requirements/build.txt ./
RUN pip install --no-cache-dir --require-hashes -r build.txt
COPY pyproject.toml README.md LICENSE LICENSE-MODEL-WEIGHTS.md ./
COPY migrations migrations
COPY stream_app stream_app
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels .

FROM python:3.11.14-slim@sha256:c8271b1f627d0068857dce5b53e14a9558603b527e46f1f901722f935b786a39 AS service
ARG REQUIREMENTS
COPY requirements/${REQUIREMENTS}.txt /requirements.txt
RUN pip install --no-cache-dir --require-hashes -r /requirements.txt
RUN --mount=from=wheel,source=/wheels,target=/wheels pip install --no-cache-dir --no-deps /wheels/*.whl \
 && useradd --system --uid 10001 rapport
USER rapport
ENTRYPOINT ["rapport"]
