module ladon.example/connectors

go 1.24

require github.com/tarantool/go-tarantool/v3 v3.0.2
