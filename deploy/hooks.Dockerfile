# syntax=docker/dockerfile:1
# Hooks of shell-operator, with the gateway's `hook-worker`, jq and the shell library. From the folder that has hooks/:
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg GATEWAY=REGISTRY/admission-gateway:VERSION \
#     --file deploy/hooks.Dockerfile --tag REGISTRY/hooks:VERSION --push .
ARG GATEWAY=admission-gateway:0.1.0

FROM ${GATEWAY}
USER 0:0
RUN apt-get update \
 && apt-get install --yes --no-install-recommends jq \
 && rm -rf /var/lib/apt/lists/* \
 && admission-gateway shell-lib > /shell_lib.sh
# Each executable file is a hook: chmod +x them.
COPY hooks /hooks
USER 65532:65532
CMD ["hook-worker", "--hooks-dir", "/hooks", "--listen", "0.0.0.0:50051"]
