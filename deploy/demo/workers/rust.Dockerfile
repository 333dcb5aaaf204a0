# syntax=docker/dockerfile:1
# The sample worker in Rust. From the repository's root. Of the image's own architecture: on a machine of another one it runs
# under emulation, in many minutes.
FROM rust:1.90-bookworm@sha256:3914072ca0c3b8aad871db9169a651ccfce30cf58303e5d6f2db16d1d8a7e58f AS build
WORKDIR /build
COPY workers/rust ./
RUN cargo build --release --package samples

FROM gcr.io/distroless/cc-debian12:nonroot@sha256:9dac0a79194e45a7da0158a9c6da57b217585af0786db3845d1f0ec1a0dd182f
COPY --from=build /build/target/release/samples /worker
USER 65532:65532
EXPOSE 50051
ENTRYPOINT ["/worker"]
CMD ["--listen", "0.0.0.0:50051"]
