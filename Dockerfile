# docker build -t lockproxy .
# docker run -e LOCKPROXY_MASTERS=a:6379,b:6379,c:6379 lockproxy init --yes      once, while the masters are new
# docker run -e LOCKPROXY_MASTERS=a:6379,b:6379,c:6379 -p 6380:6380 lockproxy
#
# compose.yaml has masters, too.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY quorum quorum
COPY resp resp
COPY script script
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /lockproxy ./cmd/lockproxy

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /lockproxy /lockproxy
# Inside a container, loopback reaches nobody. Without masters, lockproxy does not start on such an address.
ENV LOCKPROXY_LISTEN=:6380 LOCKPROXY_ADMIN=:6381
EXPOSE 6380 6381
ENTRYPOINT ["/lockproxy"]
