// Command connectors is real work of go-tarantool v3: requests, transactions over streams, events,
// a pool, and a crash under load.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"reflect"
	"time"

	"github.com/google/uuid"
	"github.com/tarantool/go-iproto"
	"github.com/tarantool/go-tarantool/v3"
	"github.com/tarantool/go-tarantool/v3/datetime"
	"github.com/tarantool/go-tarantool/v3/decimal"
	_ "github.com/tarantool/go-tarantool/v3/uuid"
)

const (
	people  = 700
	values  = 701
	counted = 702
	written = 703
)

type (
	list = []any
	dict = map[string]any
)

var (
	checks  int
	address = "127.0.0.1:" + os.Getenv("IPROTO_PORT")
)

func check(what string, got, expected any) {
	checks++
	if !reflect.DeepEqual(got, expected) {
		fmt.Printf("  %s: got %#v, not %#v\n", what, got, expected)
		os.Exit(1)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func dialer(user, password string) tarantool.NetDialer {
	return tarantool.NetDialer{Address: address, User: user, Password: password}
}

// connect makes a connection that sends requests in their order: with more than one buffer
// (Concurrency), requests of one stream may overtake each other inside of the connector.
func connect(user, password string) *tarantool.Connection {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := tarantool.Connect(ctx, dialer(user, password), tarantool.Opts{Timeout: 5 * time.Second, Concurrency: 1})
	must(err)
	return conn
}

// rows runs a request that must succeed. Numbers come back as int64, whatever their size.
func rows(doer tarantool.Doer, request tarantool.Request) list {
	found, err := doer.Do(request).Get()
	must(err)
	return normal(found).(list)
}

func normal(value any) any {
	switch value := value.(type) {
	case list:
		all := make(list, len(value))
		for at := range value {
			all[at] = normal(value[at])
		}
		return all
	case map[any]any:
		all := dict{}
		for key, inner := range value {
			all[fmt.Sprint(key)] = normal(inner)
		}
		return all
	}
	number := reflect.ValueOf(value)
	switch {
	case value == nil:
	case number.CanInt():
		return number.Int()
	case number.CanUint() && number.Uint() <= math.MaxInt64:
		return int64(number.Uint())
	}
	return value
}

func row(fields ...any) list { return normal(fields).(list) }

func firsts(found list) list {
	all := list{}
	for _, tuple := range found {
		all = append(all, tuple.(list)[0])
	}
	return all
}

func code(doer tarantool.Doer, request tarantool.Request) iproto.Error {
	_, err := doer.Do(request).Get()
	return errorCode(err)
}

func errorCode(err error) iproto.Error {
	var answer tarantool.ServerError
	if err != nil && !errors.As(err, &answer) {
		panic(err)
	}
	return answer.Code
}

func insert(space any, fields ...any) tarantool.InsertRequest {
	return tarantool.NewInsertRequest(space).Tuple(fields)
}

func selected(space any, key ...any) tarantool.SelectRequest {
	return tarantool.NewSelectRequest(space).Key(append(list{}, key...)).Iterator(tarantool.IterEq).Limit(100)
}

func update(space any, key any, operations *tarantool.Operations) tarantool.UpdateRequest {
	return tarantool.NewUpdateRequest(space).Key(list{key}).Operations(operations)
}

func operations() *tarantool.Operations { return tarantool.NewOperations() }

// define makes spaces as box.schema.space.create does.
func define(conn *tarantool.Connection) {
	format := list{dict{"name": "id", "type": "unsigned"}, dict{"name": "name", "type": "string"},
		dict{"name": "age", "type": "unsigned", "is_nullable": true}}
	unique, twice := dict{"unique": true}, dict{"unique": false}
	age := dict{"field": 2, "type": "unsigned", "is_nullable": true}
	first := list{list{0, "unsigned"}}
	for _, definition := range []struct {
		space string
		row   list
	}{
		{"_space", list{people, 1, "people", "memtx", 0, dict{}, format}},
		{"_index", list{people, 0, "pk", "tree", unique, first}},
		{"_index", list{people, 1, "name", "tree", unique, list{list{1, "string"}}}},
		{"_index", list{people, 2, "age_name", "tree", twice, list{age, dict{"field": 1, "type": "string"}}}},
		{"_index", list{people, 3, "any_case", "tree", twice,
			list{dict{"field": 1, "type": "string", "collation": 2}}}},
		{"_space", list{values, 1, "values", "memtx", 0, dict{}, list{}}},
		{"_index", list{values, 0, "pk", "hash", unique, list{list{0, "scalar"}}}},
		{"_space", list{counted, 1, "counted", "memtx", 0, dict{}, list{}}},
		{"_index", list{counted, 0, "pk", "tree", unique, first}},
		{"_sequence", list{60, 1, "counted_seq", -1, 1, 100, 100, 0, false}},
		{"_space_sequence", list{counted, 60, false, 0, ""}},
		{"_space", list{written, 1, "written", "memtx", 0, dict{}, list{}}},
		{"_index", list{written, 0, "pk", "tree", unique, first}},
		{"_user", list{40, 1, "ann", "user", dict{"chap-sha1": "lL3OvhkIPOKh+Vn9Avlkx69M/Ck="}, list{}, 0}},
		{"_priv", list{1, 40, "universe", 0, 8 | 16}},
		{"_priv", list{1, 40, "role", 2, 4}},
		{"_priv", list{1, 40, "space", people, 1}},
	} {
		rows(conn, tarantool.NewInsertRequest(definition.space).Tuple(definition.row))
	}
}

func reload(conn *tarantool.Connection) {
	schema, err := tarantool.GetSchema(conn)
	must(err)
	conn.SetSchema(schema)
}

func reads(conn *tarantool.Connection) {
	var answers []tarantool.Future
	for number := 1; number <= 1000; number++ {
		age := any(number % 10)
		if number == 500 {
			age = nil
		}
		answers = append(answers, conn.Do(insert("people", number, fmt.Sprint("name", number), age)))
	}
	for _, answer := range answers {
		_, err := answer.Get()
		must(err)
	}
	for _, each := range []struct {
		iterator tarantool.Iter
		expected list
	}{
		{tarantool.IterEq, row(5)}, {tarantool.IterReq, row(5)}, {tarantool.IterGe, row(5, 6)}, {tarantool.IterGt, row(6, 7)},
		{tarantool.IterLe, row(5, 4)}, {tarantool.IterLt, row(4, 3)},
	} {
		check(fmt.Sprint("iterator ", each.iterator), firsts(rows(conn, selected("people", 5).Iterator(each.iterator).Limit(2))), each.expected)
	}
	check("all", len(rows(conn, selected("people").Iterator(tarantool.IterAll).Limit(5000))), 1000)
	check("offset", firsts(rows(conn, selected("people").Offset(998))), row(999, 1000))
	check("second index", rows(conn, selected("people", "name77").Index("name")), row(row(77, "name77", 7)))
	check("nil in a key", firsts(rows(conn, selected("people", nil).Index("age_name"))), row(500))
	check("a part, backwards", firsts(rows(conn, selected("people", 7).Index("age_name").Iterator(tarantool.IterReq).Limit(1))), row(997))
	check("collation", firsts(rows(conn, selected("people", "NAME77").Index("any_case"))), row(77))
	var typed []struct {
		_msgpack struct{} `msgpack:",asArray"`
		ID       uint
		Name     string
		Age      *uint
	}
	must(conn.Do(selected("people", 500)).GetTyped(&typed))
	check("typed", typed[0].ID == 500 && typed[0].Name == "name500" && typed[0].Age == nil, true)
	pages(conn)
}

// pages reads an index that is not unique to its end: by positions, and after tuples.
func pages(conn *tarantool.Connection) {
	seen, position := map[any]bool{}, any(nil)
	for {
		request := selected("people", 3).Index("age_name").Limit(7).FetchPos(true)
		if position != nil {
			request = request.After(position)
		}
		response, err := conn.Do(request).GetResponse()
		must(err)
		page, err := response.Decode()
		must(err)
		for _, tuple := range page {
			seen[normal(tuple).(list)[0]] = true
		}
		packed, err := response.(*tarantool.SelectResponse).Pos()
		must(err)
		if len(packed) == 0 {
			break
		}
		position = packed
	}
	check("pages by position", len(seen), 100)
	check("after a tuple", firsts(rows(conn, selected("people").After(row(998, "name998", 8)))), row(999, 1000))
	check("a wrong position", code(conn, selected("people").After([]byte("nonsense"))), iproto.ER_ITERATOR_POSITION)
}

func changes(conn *tarantool.Connection) {
	check("replace", rows(conn, tarantool.NewReplaceRequest("people").Tuple(list{1, "one", 10})), row(row(1, "one", 10)))
	check("add, assign", rows(conn, update("people", 1, operations().Add(2, 5).Assign(1, "uno"))), row(row(1, "uno", 15)))
	check("subtract", rows(conn, update("people", 1, operations().Subtract(2, 1))), row(row(1, "uno", 14)))
	check("and", rows(conn, update("people", 1, operations().BitwiseAnd(2, 6))), row(row(1, "uno", 6)))
	check("or", rows(conn, update("people", 1, operations().BitwiseOr(2, 1))), row(row(1, "uno", 7)))
	check("xor", rows(conn, update("people", 1, operations().BitwiseXor(2, 2))), row(row(1, "uno", 5)))
	check("splice", rows(conn, update("people", 1, operations().Splice(1, 0, 1, "U"))), row(row(1, "Uno", 5)))
	check("insert a field", rows(conn, update("people", 1, operations().Insert(3, "more"))), row(row(1, "Uno", 5, "more")))
	check("delete a field", rows(conn, update("people", 1, operations().Delete(3, 1))), row(row(1, "Uno", 5)))
	check("update by another index", rows(conn, tarantool.NewUpdateRequest("people").Index("name").Key(list{"Uno"}).
		Operations(operations().Add(2, 1))), row(row(1, "Uno", 6)))
	upsert := tarantool.NewUpsertRequest("people").Tuple(list{2000, "new", 1}).Operations(operations().Add(2, 1))
	rows(conn, upsert)
	rows(conn, upsert)
	check("upsert, delete", rows(conn, tarantool.NewDeleteRequest("people").Key(list{2000})), row(row(2000, "new", 2)))
	check("delete by another index", firsts(rows(conn, tarantool.NewDeleteRequest("people").Index("name").Key(list{"name9"}))), row(9))
	call := tarantool.NewCallRequest("box.space.people:select").Args(list{list{2}})
	check("CALL select", rows(conn, call), row(row(row(2, "name2", 2))))
	check("CALL count", rows(conn, tarantool.NewCallRequest("box.space.people.index.pk:count").Args(list{})), row(999))
}

func failures(conn *tarantool.Connection) {
	for _, each := range []struct {
		what    string
		request tarantool.Request
		code    iproto.Error
	}{
		{"duplicate", insert("people", 1, "other", 1), iproto.ER_TUPLE_FOUND},
		{"duplicate of a second index", insert("people", 9999, "name3", 1), iproto.ER_TUPLE_FOUND},
		{"wrong type", insert("people", "x", "other", 1), iproto.ER_FIELD_TYPE},
		{"no such space", selected(999, 1), iproto.ER_NO_SUCH_SPACE},
		{"no such index", selected(people, 1).Index(9), iproto.ER_NO_SUCH_INDEX_ID},
		{"wrong key", selected("people", "x"), iproto.ER_KEY_PART_TYPE},
		{"too many parts", selected("people", 1, 2), iproto.ER_KEY_PART_COUNT},
		{"of a wrong type", update("people", 1, operations().Add(1, 1)), iproto.ER_UPDATE_ARG_TYPE},
		{"the primary key", update("people", 1, operations().Assign(0, 7777)), iproto.ER_CANT_UPDATE_PRIMARY_KEY},
		{"less than 0", update("people", 1, operations().Subtract(2, 100)), iproto.ER_FIELD_TYPE},
		{"iterator of HASH", selected("values", 1).Iterator(tarantool.IterLt), iproto.ER_UNSUPPORTED_INDEX_FEATURE},
		{"no procedure", tarantool.NewCallRequest("nothing").Args(list{}), iproto.ER_NO_SUCH_PROC},
	} {
		check(each.what, code(conn, each.request), each.code)
	}
	check("nothing of it happened", rows(conn, selected("people", 1)), row(row(1, "Uno", 6)))
	_, err := tarantool.Connect(context.Background(), dialer("ann", "wrong"), tarantool.Opts{})
	check("wrong password", errorCode(err), iproto.ER_CREDS_MISMATCH)
	ann := connect("ann", "test")
	check("ann reads", firsts(rows(ann, selected("people", 2))), row(2))
	check("ann does not write", code(ann, insert("people", 9999, "other", 1)), iproto.ER_ACCESS_DENIED)
	check("nor reads all", code(ann, selected(values, 1)), iproto.ER_ACCESS_DENIED)
	must(ann.CloseGraceful())
}

func extensionTypes() list {
	when, err := datetime.NewDatetime(time.Date(2024, 2, 29, 1, 2, 3, 123456789, time.FixedZone("", 3*3600)))
	must(err)
	return list{decimal.MustNewDecimal("-12.3400"), uuid.UUID{15: 7}, when, datetime.Interval{Month: 1, Sec: -5},
		[]byte{0, 255}, uint64(math.MaxUint64), int64(math.MinInt64), 1.5, nil, true, row(1, dict{"b": "\u00e4"})}
}

func extensions(conn *tarantool.Connection) {
	all := append(list{"row"}, extensionTypes()...)
	rows(conn, tarantool.NewInsertRequest("values").Tuple(all))
	checkExtensions(conn)
	rows(conn, insert("values", uuid.UUID{0: 1}, decimal.MustNewDecimal("0.1")))
	sum := rows(conn, update("values", uuid.UUID{0: 1}, operations().Add(1, decimal.MustNewDecimal("0.2"))))
	check("decimal sum", fmt.Sprint(sum[0].(list)[1]), "0.3")
	check("sequence, downwards", firsts(append(rows(conn, insert("counted", nil, "a")), rows(conn, insert("counted", nil, "b"))...)), row(100, 99))
}

func checkExtensions(conn *tarantool.Connection) {
	found := rows(conn, selected("values", "row"))[0].(list)[1:]
	for at, expected := range normal(extensionTypes()).(list) {
		if when, is := expected.(datetime.Datetime); is {
			got := found[at].(datetime.Datetime)
			_, offset := got.ToTime().Zone()
			check("datetime", got.ToTime().Equal(when.ToTime()) && offset == 3*3600, true)
		} else {
			check(fmt.Sprintf("extension type %T", expected), fmt.Sprintf("%T %v", found[at], found[at]), fmt.Sprintf("%T %v", expected, expected))
		}
	}
}

// events follows the schema's version while a connection with old names sees new ones.
func events(conn *tarantool.Connection) {
	versions := make(chan any, 100)
	watcher, err := conn.NewWatcher("box.schema", func(event tarantool.WatchEvent) {
		versions <- normal(event.Value).(dict)["version"]
	})
	must(err)
	next := func() any {
		select {
		case version := <-versions:
			return version
		case <-time.After(5 * time.Second):
			return "no event"
		}
	}
	version, isNumber := next().(int64)
	check("the first event has a version", isNumber, true)
	other := connect("admin", "secret")
	rows(other, insert("_index", people, 4, "nick", "tree", dict{"unique": false},
		list{dict{"field": 3, "type": "string", "is_nullable": true}}))
	check("an event of the new index", next(), version+1)
	reload(conn)
	rows(conn, update("people", 2, operations().Assign(3, "two")))
	check("the new index", firsts(rows(conn, selected("people", "two").Index("nick"))), row(2))
	rows(other, tarantool.NewDeleteRequest("_index").Key(list{people, 4}))
	check("an event of its end", next(), version+2)
	check("it is gone", code(conn, selected("people", "two").Index("nick")), iproto.ER_NO_SUCH_INDEX_NAME)
	watcher.Unregister()
	rows(other, update("_space", values, operations().Assign(2, "anything")))
	check("a space's new name", code(other, selected(values, "row")), iproto.Error(0))
	rows(other, update("_space", values, operations().Assign(2, "values")))
	check("none once the watcher is gone", len(versions), 0)
	status := rows(conn, tarantool.NewWatchOnceRequest("box.status"))[0].(dict)
	check("status", row(status["is_ro"], status["status"]), row(false, "running"))
	must(other.CloseGraceful())
}

func crash() {
	output, err := exec.Command(os.Getenv("SERVER"), "crash").CombinedOutput()
	if err != nil {
		fmt.Println(string(output))
		panic(err)
	}
}

func main() {
	conn := connect("admin", "secret")
	define(conn)
	reload(conn)
	reads(conn)
	changes(conn)
	failures(conn)
	extensions(conn)
	events(conn)
	transactions(conn)
	crashUnderLoad(conn)
	fmt.Println(" ", checks, "checks passed")
}
