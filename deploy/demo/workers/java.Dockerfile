# syntax=docker/dockerfile:1
# The sample worker in Java. From the repository's root. What it makes runs on every architecture.
FROM --platform=$BUILDPLATFORM maven:3.9-eclipse-temurin-17 AS build
WORKDIR /build
COPY workers/java ./
RUN mvn --batch-mode --quiet --no-transfer-progress -Dmaven.test.skip=true package

FROM gcr.io/distroless/java17-debian12:nonroot
WORKDIR /app
COPY --from=build /build/bin /app
USER 65532:65532
EXPOSE 50051
# By default the heap is a quarter of the container's memory.
ENTRYPOINT ["/usr/bin/java", "-XX:MaxRAMPercentage=60", "-jar", "samples.jar"]
CMD ["--listen", "0.0.0.0:50051"]
