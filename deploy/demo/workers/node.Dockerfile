# syntax=docker/dockerfile:1
# The sample worker for Node.js. From the repository's root.
FROM node:22-bookworm-slim@sha256:48e4b67d85f87bd551df43704e24d252f56cc5f8e9718841aace50f19948f0f9 AS build
WORKDIR /app
COPY workers/node/package.json workers/node/package-lock.json ./
RUN npm ci --omit=dev
COPY workers/node/proto proto
COPY workers/node/src src
COPY workers/node/samples samples

FROM gcr.io/distroless/nodejs22-debian12:nonroot@sha256:13593b7570658e8477de39e2f4a1dd25db2f836d68a0ba771251572d23bb4f8e
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app /app
USER 65532:65532
EXPOSE 50051
ENTRYPOINT ["/nodejs/bin/node", "samples/main.js"]
CMD ["--listen", "0.0.0.0:50051"]
