package main

import (
	"time"

	"github.com/tarantool/go-iproto"
	"github.com/tarantool/go-tarantool/v3"
)

func stream(conn *tarantool.Connection) *tarantool.Stream {
	stream, err := conn.NewStream()
	must(err)
	return stream
}

func begin(stream *tarantool.Stream) *tarantool.Stream {
	rows(stream, tarantool.NewBeginRequest().TxnIsolation(tarantool.BestEffortLevel).Timeout(10*time.Second))
	return stream
}

func assign(number any, name string) tarantool.UpdateRequest {
	return update("people", number, operations().Assign(1, name))
}

func name(doer tarantool.Doer, number any) any {
	found := rows(doer, selected("people", number))
	if len(found) == 0 {
		return nil
	}
	return found[0].(list)[1]
}

// transactions over streams: commit, rollback, conflicts, timeouts, errors.
func transactions(conn *tarantool.Connection) {
	commit, rollback := tarantool.NewCommitRequest(), tarantool.NewRollbackRequest()
	one, other := begin(stream(conn)), stream(conn)
	rows(one, insert("people", 3000, "inside", 1))
	check("hidden outside", name(conn, 3000), nil)
	check("seen inside", name(one, 3000), "inside")
	rows(one, commit)
	check("seen after the commit", name(conn, 3000), "inside")
	check("a commit of nothing", code(one, commit), iproto.Error(0))

	begin(one)
	rows(one, assign(3000, "dropped"))
	rows(one, tarantool.NewDeleteRequest("people").Key(list{3}))
	check("one inside of one", code(one, tarantool.NewBeginRequest()), iproto.ER_ACTIVE_TRANSACTION)
	rows(one, rollback)
	check("taken back", row(name(conn, 3000), name(conn, 3)), row("inside", "name3"))

	begin(one)
	check("a statement's error", code(one, insert("people", 3000, "again", 1)), iproto.ER_TUPLE_FOUND)
	rows(one, assign(3000, "goes on"))
	rows(one, commit)
	check("leaves the others", name(conn, 3000), "goes on")

	begin(one)
	begin(other)
	name(one, 3000)
	name(other, 3000)
	rows(one, assign(3000, "first"))
	rows(other, assign(3000, "second"))
	rows(one, commit)
	check("both wrote what they read", code(other, commit), iproto.ER_TRANSACTION_CONFLICT)
	check("the first one counts", name(conn, 3000), "first")

	// Write skew: each reads what the other one writes.
	begin(one)
	begin(other)
	name(one, 4)
	name(other, 5)
	rows(one, assign(5, "by one"))
	rows(other, assign(4, "by the other"))
	rows(one, commit)
	check("write skew", code(other, commit), iproto.ER_TRANSACTION_CONFLICT)
	check("only one's write", row(name(conn, 4), name(conn, 5)), row("name4", "by one"))

	// A range that was read and then got another member.
	begin(one)
	check("an empty range", rows(one, selected("people", 5000).Iterator(tarantool.IterGe)), list{})
	rows(conn, insert("people", 5000, "between", 1))
	rows(one, assign(6, "with a phantom"))
	check("phantom", code(one, commit), iproto.ER_TRANSACTION_CONFLICT)

	rows(one, tarantool.NewBeginRequest().Timeout(100*time.Millisecond))
	rows(one, assign(6, "too late"))
	time.Sleep(300 * time.Millisecond)
	check("its time is over", code(one, commit), iproto.ER_TRANSACTION_TIMEOUT)
	check("and nothing is left", name(conn, 6), "name6")

	// Many at once, on one connection: each adds one to two rows.
	var answers []tarantool.Future
	for range 100 {
		all := stream(conn)
		answers = append(answers, all.Do(tarantool.NewBeginRequest()),
			all.Do(update("people", 7, operations().Add(2, 1))), all.Do(update("people", 8, operations().Add(2, 1))), all.Do(commit))
	}
	committed := 0
	for at, answer := range answers {
		_, err := answer.Get()
		if at%4 == 3 && err == nil {
			committed++
		} else if at%4 == 3 {
			check("why not", errorCode(err), iproto.ER_TRANSACTION_CONFLICT)
		}
	}
	age := func(number int) any { return rows(conn, selected("people", number))[0].(list)[2] }
	check("at least one is committed", committed > 0, true)
	check("as many as were committed", row(age(7), age(8)), row(7+committed, 8+committed))
}
