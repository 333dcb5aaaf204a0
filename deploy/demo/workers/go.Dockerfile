# syntax=docker/dockerfile:1
# The sample worker in Go. From the repository's root. It compiles for other architectures itself.
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm@sha256:551752d3ad9de9923190bf5280500617ed8fee287ffb4b0220e770ef89346258 AS build
WORKDIR /build
COPY workers/go/go.mod workers/go/go.sum ./
RUN go mod download
COPY workers/go ./
ARG TARGETOS TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags=-s -o worker ./cmd/samples

FROM gcr.io/distroless/static-debian12:nonroot@sha256:d093aa3e30dbadd3efe1310db061a14da60299baff8450a17fe0ccc514a16639
COPY --from=build /build/worker /worker
USER 65532:65532
EXPOSE 50051
ENTRYPOINT ["/worker"]
CMD ["--listen", "0.0.0.0:50051"]
