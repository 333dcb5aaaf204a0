# syntax=docker/dockerfile:1
# The sample worker in Java. From the repository's root. What it makes runs on every architecture.
FROM --platform=$BUILDPLATFORM maven:3.9-eclipse-temurin-17@sha256:42a3ac393abbc64dae6c96703e5ead2e921fe9103371ac58b5b404b0d6a26502 AS build
WORKDIR /build
COPY workers/java ./
RUN mvn --batch-mode --quiet --no-transfer-progress -Dmaven.test.skip=true package

FROM gcr.io/distroless/java17-debian12:nonroot@sha256:06484c2a9dcc9070aeafbc0fe752cb9f73bc0cea5c311f6a516e9010061998ad
WORKDIR /app
COPY --from=build /build/bin /app
USER 65532:65532
EXPOSE 50051
# By default the heap is a quarter of the container's memory.
ENTRYPOINT ["/usr/bin/java", "-XX:MaxRAMPercentage=60", "-jar", "samples.jar"]
CMD ["--listen", "0.0.0.0:50051"]
