# The collector, as an ordinary user, with its store and the organiser's token in the volume /data.
#   docker build -t discreet .
#   docker run -p 127.0.0.1:8000:8000 -v discreet:/data -v "$PWD/survey.toml:/survey.toml:ro" discreet
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .
RUN python -m venv /opt/discreet
RUN /opt/discreet/bin/pip install --no-cache-dir -c constraints.txt "discreet[serve] @ file://$(echo /wheels/discreet-*.whl)"

FROM python:${PYTHON}-slim
RUN groupadd --gid 10001 discreet \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin discreet \
 && install -d -o 10001 -g 10001 -m 700 /data
COPY --from=build /opt/discreet /opt/discreet
# numba keeps what it compiles: the user can write nowhere else
ENV PATH=/opt/discreet/bin:$PATH PYTHONUNBUFFERED=1 NUMBA_CACHE_DIR=/data/cache
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["discreet", "serve", "--host", "0.0.0.0"]
CMD ["/survey.toml"]
