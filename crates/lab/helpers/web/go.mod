module ladon.lab/web

go 1.26.0

require (
	github.com/redis/rueidis v1.0.79
	github.com/syndtr/goleveldb v1.0.0
	github.com/tarantool/go-tarantool/v2 v2.4.1
)

require (
	github.com/golang/snappy v0.0.0-20180518054509-2e65f85255db // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	github.com/tarantool/go-iproto v1.1.0 // indirect
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)
