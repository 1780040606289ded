package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tarantool/go-tarantool/v3"
	"github.com/tarantool/go-tarantool/v3/pool"
)

const (
	writers  = 4
	pipeline = 16
	// Rows that one transaction inserts.
	together = 3
)

// acknowledged collects which transactions of a writer were committed.
type acknowledged struct {
	sync.Mutex
	numbers map[int]bool
	sent    int
}

// write commits transactions, many at once, until the connection ends with the server.
func (done *acknowledged) write(writer int) {
	conn := connect("admin", "secret")
	defer conn.Close()
	var all sync.WaitGroup
	for lane := range pipeline {
		all.Add(1)
		go func() {
			defer all.Done()
			for number := lane; done.commit(conn, writer, number); number += pipeline {
			}
		}()
	}
	all.Wait()
}

func (done *acknowledged) commit(conn *tarantool.Connection, writer, number int) bool {
	first := (writer*1_000_000 + number) * together
	stream, err := conn.NewStream()
	if err != nil {
		return false
	}
	done.Lock()
	done.sent++
	done.Unlock()
	answers := []tarantool.Future{stream.Do(tarantool.NewBeginRequest())}
	for row := range together {
		answers = append(answers, stream.Do(insert(written, first+row, fmt.Sprint("text ", first+row))))
	}
	answers = append(answers, stream.Do(tarantool.NewCommitRequest()))
	for _, answer := range answers {
		if _, err := answer.Get(); err != nil {
			return false
		}
	}
	done.Lock()
	done.numbers[first] = true
	done.Unlock()
	return true
}

// crashUnderLoad kills the server while it commits; what it acknowledged must be there afterwards,
// and of a transaction all rows or none.
func crashUnderLoad(conn *tarantool.Connection) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	instances := []pool.Instance{}
	for number := range 3 {
		instances = append(instances, pool.Instance{Name: fmt.Sprint(number), Dialer: dialer("admin", "secret")})
	}
	pooled, err := pool.NewWithOpts(ctx, instances, pool.Opts{CheckTimeout: 50 * time.Millisecond})
	must(err)
	patient, err := tarantool.Connect(ctx, dialer("admin", "secret"), tarantool.Opts{Reconnect: 50 * time.Millisecond, Timeout: 5 * time.Second})
	must(err)
	check("the pool sees a master", pooled.Info()["1"].Role, pool.RoleMaster)

	done := acknowledged{numbers: map[int]bool{}}
	var all sync.WaitGroup
	for writer := range writers {
		all.Add(1)
		go func() {
			defer all.Done()
			done.write(writer)
		}()
	}
	time.Sleep(500 * time.Millisecond)
	crash()
	all.Wait()

	ask := func(do func(tarantool.Request) tarantool.Future, request tarantool.Request) list {
		for {
			found, err := do(request).Get()
			if err == nil {
				return normal(found).(list)
			}
			if ctx.Err() != nil {
				panic(err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	onPool := func(request tarantool.Request) tarantool.Future { return pooled.Do(request, pool.ModeRW) }
	check("a connection reconnects", ask(patient.Do, selected(people, 3000)), row(row(3000, "first", 1)))
	check("the pool too", ask(onPool, selected(people, 3000)), row(row(3000, "first", 1)))
	found := map[int]bool{}
	for _, tuple := range ask(patient.Do, selected(written).Limit(10_000_000)) {
		number := int(tuple.(list)[0].(int64))
		found[number] = tuple.(list)[1] == fmt.Sprint("text ", number)
	}
	lost, half := 0, 0
	for first := range done.numbers {
		if !found[first] {
			lost++
		}
	}
	for number := range found {
		if first := number - number%together; !found[first] || !found[first+1] || !found[first+2] {
			half++
		}
	}
	check("some transactions were committed", len(done.numbers) > 20, true)
	check(fmt.Sprintf("lost, of %d acknowledged transactions", len(done.numbers)), lost, 0)
	check("rows of half a transaction", half, 0)
	check("no more than was sent", len(found) <= done.sent*together, true)
	checkExtensions(patient)
	check("the sequence goes on", firsts(rows(patient, insert(counted, nil, "c"))), row(98))
	must(pooled.CloseGraceful())
	must(patient.CloseGraceful())
}
