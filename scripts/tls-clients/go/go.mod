module ladon/tls-clients

go 1.26.0

require (
	github.com/redis/go-redis/v9 v9.23.0
	github.com/tarantool/go-tarantool/v3 v3.0.2
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/tarantool/go-iproto v1.1.0 // indirect
	github.com/tarantool/go-option v1.1.0 // indirect
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)
