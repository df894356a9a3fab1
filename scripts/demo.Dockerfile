# scripts/demo on a machine without Debian 12. In a checkout:
#   docker build -f scripts/demo.Dockerfile -t kclxx-demo . && docker run --rm kclxx-demo
FROM debian:12-slim
COPY . /kclxx
WORKDIR /kclxx
# Installs, builds and fetches what the demo needs, and runs it once.
RUN scripts/demo
CMD ["scripts/demo"]
