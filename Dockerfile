# docker build -t lockproxy .
# docker run -e LOCKPROXY_MASTERS=a:6379,b:6379,c:6379 lockproxy init --yes      once, while the masters are new
# docker run -e LOCKPROXY_MASTERS=a:6379,b:6379,c:6379 -e LOCKPROXY_USERS=default:secret -p 6380:6380 lockproxy
# docker run -e LOCKPROXY_MASTERS=a:6379,b:6379,c:6379 -e LOCKPROXY_PROTECTED_MODE=no -p 127.0.0.1:6380:6380 lockproxy
#
# Without one of LOCKPROXY_USERS and LOCKPROXY_PROTECTED_MODE=no, it turns all clients away, as they come from outside of the container.
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
# Inside a container, loopback reaches nobody. So clients need users, or protected_mode switched off. Without masters, lockproxy does not start on such an address.
ENV LOCKPROXY_LISTEN=:6380 LOCKPROXY_ADMIN=:6381
EXPOSE 6380 6381
ENTRYPOINT ["/lockproxy"]
