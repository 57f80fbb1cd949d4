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

FROM python:3.11.14-slim@sha256:c8271b1f627d0068857dce5b53e14a9558603b527e46f1f901722f935b786a39 AS environment
RUN apt-get update -q && apt-get install -q -y --no-install-recommends binutils
ARG REQUIREMENTS
COPY requirements/${REQUIREMENTS}.txt /requirements.txt
COPY servers/docker/strip-extension-modules /
# --no-deps: the list is complete, and leaves out what no process needs (requirements/excluded.txt)
RUN python -m venv --without-pip /opt/rapport \
 && pip --python /opt/rapport install --no-cache-dir --no-compile --no-deps --require-hashes -r /requirements.txt \
 && /strip-extension-modules /opt/rapport \
 && /opt/rapport/bin/python -m compileall -q -x /tests/ /opt/rapport/lib

FROM python:3.11.14-slim@sha256:c8271b1f627d0068857dce5b53e14a9558603b527e46f1f901722f935b786a39 AS service
COPY --from=environment /opt/rapport /opt/rapport
ENV PATH=/opt/rapport/bin:$PATH
RUN --mount=from=wheel,source=/wheels,target=/wheels \
    pip --python /opt/rapport install --no-cache-dir --no-deps /wheels/*.whl \
 && useradd --system --uid 10001 rapport
USER rapport
ENTRYPOINT ["rapport"]
