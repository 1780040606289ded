// What a program that uses go-redis does all day, against the server at the port that is the
// first argument. Prints the number of checks.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var checks int
var ctx = context.Background()

func equal[T any](what string, got T, err error, wanted T) {
	checks++
	if err != nil {
		fail("%s: %v", what, err)
	}
	if !reflect.DeepEqual(got, wanted) {
		fail("%s: got %v, wanted %v", what, got, wanted)
	}
}

func refused(what string, err error, text string) {
	checks++
	if err == nil || !strings.Contains(err.Error(), text) {
		fail("%s: %v does not say %q", what, err, text)
	}
}

func fail(format string, args ...any) {
	fmt.Printf(format+"\n", args...)
	os.Exit(1)
}

func sorted(in []string, err error) ([]string, error) {
	sort.Strings(in)
	return in, err
}

func main() {
	address := "127.0.0.1:" + os.Args[1]
	for _, protocol := range []int{2, 3} {
		c := redis.NewClient(&redis.Options{Addr: address, Protocol: protocol, ClientName: "go"})
		if err := c.FlushAll(ctx).Err(); err != nil {
			fail("FLUSHALL: %v", err)
		}
		ordinary(c)
		pipelines(c)
		server(c)
		if err := c.Close(); err != nil {
			fail("close: %v", err)
		}
	}
	fmt.Println(checks)
}

func ordinary(c *redis.Client) {
	s, err := c.Set(ctx, "k", "v", time.Minute).Result()
	equal("SET", s, err, "OK")
	s, err = c.Get(ctx, "k").Result()
	equal("GET", s, err, "v")
	if err = c.Get(ctx, "nosuch").Err(); !errors.Is(err, redis.Nil) {
		fail("GET nosuch: %v", err)
	}
	d, err := c.TTL(ctx, "k").Result()
	equal("TTL", d > 58*time.Second && d <= time.Minute, err, true)
	b, err := c.SetNX(ctx, "k", "w", 0).Result()
	equal("SETNX", b, err, false)
	s, err = c.SetArgs(ctx, "k", "w", redis.SetArgs{Get: true, KeepTTL: true}).Result()
	equal("SET GET KEEPTTL", s, err, "v")
	n, err := c.Incr(ctx, "n").Result()
	equal("INCR", n, err, 1)
	n, err = c.IncrBy(ctx, "n", 41).Result()
	equal("INCRBY", n, err, 42)
	f, err := c.IncrByFloat(ctx, "n", 0.5).Result()
	equal("INCRBYFLOAT", f, err, 42.5)
	s, err = c.MSet(ctx, "a", 1, "b", 2).Result()
	equal("MSET", s, err, "OK")
	list, err := c.MGet(ctx, "a", "nosuch", "b").Result()
	equal("MGET", list, err, []any{"1", nil, "2"})
	s, err = c.GetEx(ctx, "a", time.Hour).Result()
	equal("GETEX", s, err, "1")
	s, err = c.GetDel(ctx, "a").Result()
	equal("GETDEL", s, err, "1")
	n, err = c.SAdd(ctx, "s", "x", "y", "z").Result()
	equal("SADD", n, err, 3)
	members, err := sorted(c.SMembers(ctx, "s").Result())
	equal("SMEMBERS", members, err, []string{"x", "y", "z"})
	n, err = c.SAdd(ctx, "t", "y", "w").Result()
	equal("SADD", n, err, 2)
	members, err = sorted(c.SInter(ctx, "s", "t").Result())
	equal("SINTER", members, err, []string{"y"})
	members, err = sorted(c.SUnion(ctx, "s", "t").Result())
	equal("SUNION", members, err, []string{"w", "x", "y", "z"})
	flags, err := c.SMIsMember(ctx, "s", "x", "q").Result()
	equal("SMISMEMBER", flags, err, []bool{true, false})
	n, err = c.SInterCard(ctx, 0, "s", "t").Result()
	equal("SINTERCARD", n, err, 1)
	members, err = c.SPopN(ctx, "s", 2).Result()
	equal("SPOP", len(members), err, 2)
	refused("GET of a set", c.Get(ctx, "t").Err(), "WRONGTYPE")
	refused("SETEX 0", c.SetEx(ctx, "k", "v", 0).Err(), "invalid expire time")
	ok, err := c.Expire(ctx, "k", time.Minute).Result()
	equal("EXPIRE", ok, err, true)
	ok, err = c.ExpireNX(ctx, "k", time.Minute).Result()
	equal("EXPIRE NX", ok, err, false)
	ok, err = c.Persist(ctx, "k").Result()
	equal("PERSIST", ok, err, true)
	n, err = c.Copy(ctx, "k", "k2", 0, false).Result()
	equal("COPY", n, err, 1)
	s, err = c.Rename(ctx, "k2", "k3").Result()
	equal("RENAME", s, err, "OK")
	n, err = c.Del(ctx, "k3", "nosuch").Result()
	equal("DEL", n, err, 1)
	s, err = c.Type(ctx, "t").Result()
	equal("TYPE", s, err, "set")
	for i := range 300 {
		if err := c.Set(ctx, fmt.Sprintf("scan:%d", i), i, 0).Err(); err != nil {
			fail("SET: %v", err)
		}
	}
	seen := map[string]bool{}
	for it := c.Scan(ctx, 0, "scan:*", 13).Iterator(); it.Next(ctx); {
		seen[it.Val()] = true
	}
	equal("SCAN", len(seen), nil, 300)
	lcs, err := c.LCS(ctx, &redis.LCSQuery{Key1: "b", Key2: "b"}).Result()
	equal("LCS", lcs.MatchString, err, "2")
}

func pipelines(c *redis.Client) {
	replies, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range 200 {
			p.Set(ctx, fmt.Sprintf("p%d", i), i, 0)
			p.Get(ctx, fmt.Sprintf("p%d", i))
		}
		return nil
	})
	equal("a pipeline", len(replies), err, 400)
	equal("its last reply", replies[399].(*redis.StringCmd).Val(), nil, "199")
	replies, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "tx", 1, 0)
		p.Incr(ctx, "tx")
		return nil
	})
	equal("a transaction", len(replies), err, 2)

	// Optimistic locking: ten goroutines, ten increments each, none lost.
	if err := c.Set(ctx, "counter", 0, 0).Err(); err != nil {
		fail("SET: %v", err)
	}
	add := func() error {
		return c.Watch(ctx, func(tx *redis.Tx) error {
			n, err := tx.Get(ctx, "counter").Int()
			if err != nil {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Set(ctx, "counter", n+1, 0)
				return nil
			})
			return err
		}, "counter")
	}
	var all sync.WaitGroup
	for range 10 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 10 {
				var err error = redis.TxFailedErr
				for errors.Is(err, redis.TxFailedErr) {
					err = add()
				}
				if err != nil {
					fail("WATCH: %v", err)
				}
			}
		}()
	}
	all.Wait()
	n, err := c.Get(ctx, "counter").Int()
	equal("the counter", n, err, 100)
}

func server(c *redis.Client) {
	s, err := c.Ping(ctx).Result()
	equal("PING", s, err, "PONG")
	s, err = c.ClientGetName(ctx).Result()
	equal("CLIENT GETNAME", s, err, "go")
	info, err := c.ClientInfo(ctx).Result()
	equal("CLIENT INFO", strings.HasPrefix(info.LibName, "go-redis"), err, true)
	s, err = c.Info(ctx, "server").Result()
	equal("INFO", strings.Contains(s, "redis_version:"), err, true)
	m, err := c.ConfigGet(ctx, "maxmemory").Result()
	equal("CONFIG GET", m, err, map[string]string{"maxmemory": "0"})
	s, err = c.ConfigSet(ctx, "maxmemory", "0").Result()
	equal("CONFIG SET", s, err, "OK")
	commands, err := c.Command(ctx).Result()
	equal("COMMAND", commands["get"].ReadOnly, err, true)
	keys, err := c.CommandGetKeys(ctx, "mset", "a", "1", "b", "2").Result()
	equal("COMMAND GETKEYS", keys, err, []string{"a", "b"})
	at, err := c.Time(ctx).Result()
	equal("TIME", time.Since(at).Abs() < 5*time.Second, err, true)
	size, err := c.DBSize(ctx).Result()
	equal("DBSIZE", size > 500, err, true)
	used, err := c.MemoryUsage(ctx, "n").Result()
	equal("MEMORY USAGE", used > 0, err, true)
	_, err = c.SlowLogGet(ctx, 10).Result()
	equal("SLOWLOG GET", true, err, true)
	refused("no such command", c.Do(ctx, "nosuch").Err(), "unknown command")
	s, err = c.FlushDB(ctx).Result()
	equal("FLUSHDB", s, err, "OK")
}
