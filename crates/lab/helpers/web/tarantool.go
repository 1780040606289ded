package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tarantool/go-tarantool/v2"
)

// kvSpace is the lab's space of keys and values in Tarantool.
const kvSpace = 512

type tarantoolStore struct {
	connection *tarantool.Connection
}

// connectTarantool makes one connection for all users: the connector is asynchronous.
func connectTarantool(address string) (store, error) {
	deadline := time.Now().Add(patience)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		dialer := tarantool.NetDialer{Address: address}
		connection, err := tarantool.Connect(ctx, dialer, tarantool.Opts{Timeout: patience, SkipSchema: true})
		cancel()
		if err == nil {
			return &tarantoolStore{connection}, nil
		}
		if time.Now().After(deadline) {
			return nil, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (t *tarantoolStore) set(key string, value []byte) error {
	request := tarantool.NewReplaceRequest(kvSpace).Tuple([]any{key, string(value)})
	_, err := t.connection.Do(request).Get()
	return err
}

func (t *tarantoolStore) get(key string) ([]byte, error) {
	request := tarantool.NewSelectRequest(kvSpace).Index(0).Limit(1).
		Iterator(tarantool.IterEq).Key([]any{key})
	tuples, err := t.connection.Do(request).Get()
	if err != nil {
		return nil, err
	}
	if len(tuples) == 0 {
		return nil, errAbsent
	}
	tuple, ok := tuples[0].([]any)
	if !ok || len(tuple) != 2 {
		return nil, fmt.Errorf("no pair: %v", tuples[0])
	}
	value, ok := tuple[1].(string)
	if !ok {
		return nil, fmt.Errorf("no string: %v", tuple[1])
	}
	return []byte(value), nil
}

func (t *tarantoolStore) delete(key string) (bool, error) {
	request := tarantool.NewDeleteRequest(kvSpace).Index(0).Key([]any{key})
	tuples, err := t.connection.Do(request).Get()
	return len(tuples) > 0, err
}

func (t *tarantoolStore) ready() error {
	request := tarantool.NewEvalRequest("return lab_is_ready()").Args([]any{})
	values, err := t.connection.Do(request).Get()
	if err == nil && (len(values) != 1 || values[0] != true) {
		err = fmt.Errorf("not ready: %v", values)
	}
	return err
}

func (t *tarantoolStore) close() error { return t.connection.CloseGraceful() }
