# syntax=docker/dockerfile:1
# The sample worker in Rust. From the repository's root. Of the image's own architecture: on a machine of another one it runs
# under emulation, in many minutes.
FROM rust:1.90-bookworm AS build
WORKDIR /build
COPY workers/rust ./
RUN cargo build --release --package samples

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /build/target/release/samples /worker
USER 65532:65532
EXPOSE 50051
ENTRYPOINT ["/worker"]
CMD ["--listen", "0.0.0.0:50051"]
