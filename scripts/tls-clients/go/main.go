// go-redis and go-tarantool over TLS, with a client's certificate.
//
//	tls-clients FOLDER REDIS_PORT IPROTO_PORT
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/tarantool/go-tarantool/v3"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(what string, is bool) {
	if !is {
		must(fmt.Errorf("wrong: %s", what))
	}
}

func config(folder string) *tls.Config {
	authority, err := os.ReadFile(folder + "/ca.crt")
	must(err)
	pool := x509.NewCertPool()
	check("the authority", pool.AppendCertsFromPEM(authority))
	own, err := tls.LoadX509KeyPair(folder+"/client.crt", folder+"/client.key")
	must(err)
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}, ServerName: "localhost"}
}

func goRedis(port string, config *tls.Config) {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, TLSConfig: config, PoolSize: 8})
	defer client.Close()
	must(client.Set(ctx, "go", strings.Repeat("x", 1<<20), 0).Err())
	length, err := client.StrLen(ctx, "go").Result()
	must(err)
	check("STRLEN", length == 1<<20)
	value, err := client.Get(ctx, "go").Result()
	must(err)
	check("GET of 1 MB", len(value) == 1<<20)
	messages := client.Subscribe(ctx, "news")
	defer messages.Close()
	_, err = messages.Receive(ctx)
	must(err)
	var users sync.WaitGroup
	for range 32 {
		users.Add(1)
		go func() {
			defer users.Done()
			for range 100 {
				pipe := client.Pipeline()
				pipe.Incr(ctx, "count")
				pipe.Get(ctx, "count")
				_, err := pipe.Exec(ctx)
				must(err)
			}
		}()
	}
	users.Wait()
	count, err := client.Get(ctx, "count").Int()
	must(err)
	check("3,200 INCR", count == 3200)
	must(client.Publish(ctx, "news", "it works").Err())
	message, err := messages.ReceiveMessage(ctx)
	must(err)
	check("a message", message.Payload == "it works")
	fmt.Println("go-redis: ok")
}

// A dialer of go-tarantool that speaks TLS; its other steps are the library's.
type dialer struct {
	address string
	config  *tls.Config
}

type conn struct {
	net.Conn
	buffered *bufio.ReadWriter
}

func (c conn) Read(bytes []byte) (int, error)       { return c.buffered.Read(bytes) }
func (c conn) Write(bytes []byte) (int, error)      { return c.buffered.Write(bytes) }
func (c conn) Flush() error                         { return c.buffered.Flush() }
func (c conn) Greeting() tarantool.Greeting         { return tarantool.Greeting{} }
func (c conn) ProtocolInfo() tarantool.ProtocolInfo { return tarantool.ProtocolInfo{} }
func (c conn) Addr() net.Addr                       { return c.RemoteAddr() }

func (d dialer) Dial(ctx context.Context, _ tarantool.DialOpts) (tarantool.Conn, error) {
	inner, err := (&tls.Dialer{Config: d.config}).DialContext(ctx, "tcp", d.address)
	if err != nil {
		return nil, err
	}
	return conn{inner, bufio.NewReadWriter(bufio.NewReader(inner), bufio.NewWriter(inner))}, nil
}

func goTarantool(port string, config *tls.Config) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	connection, err := tarantool.Connect(ctx, tarantool.ProtocolDialer{Dialer: tarantool.GreetingDialer{
		Dialer: dialer{"127.0.0.1:" + port, config},
	}}, tarantool.Opts{Timeout: 5 * time.Second})
	must(err)
	defer connection.Close()
	_, err = connection.Do(tarantool.NewPingRequest()).Get()
	must(err)
	rows, err := connection.Do(tarantool.NewSelectRequest(281).Limit(100)).Get()
	must(err)
	check("SELECT of _vspace", len(rows) > 0)
	fmt.Println("go-tarantool: ok")
}

func main() {
	config := config(os.Args[1])
	goRedis(os.Args[2], config)
	goTarantool(os.Args[3], config)
}
