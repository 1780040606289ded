package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

// respStore sends what all users ask over one connection, as go-tarantool does: a client with a
// connection per user costs a system call on both sides for each request, and that is what it measures.
type respStore struct {
	client rueidis.Client
}

func connectResp(address string) (store, error) {
	deadline := time.Now().Add(patience)
	for {
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress:       []string{address},
			ForceSingleClient: true,
			AlwaysPipelining:  true,
			PipelineMultiplex: -1,
			AlwaysRESP2:       true,
			DisableCache:      true,
			ClientSetInfo:     rueidis.DisableClientSetInfo,
		})
		if err == nil {
			return &respStore{client}, nil
		}
		if time.Now().After(deadline) {
			return nil, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (r *respStore) set(key string, value []byte) error {
	set := r.client.B().Set().Key(key).Value(rueidis.BinaryString(value)).Build()
	return r.client.Do(context.Background(), set).Error()
}

func (r *respStore) get(key string) ([]byte, error) {
	get := r.client.B().Get().Key(key).Build()
	value, err := r.client.Do(context.Background(), get).AsBytes()
	if rueidis.IsRedisNil(err) {
		return nil, errAbsent
	}
	return value, err
}

func (r *respStore) delete(key string) (bool, error) {
	del := r.client.B().Del().Key(key).Build()
	count, err := r.client.Do(context.Background(), del).AsInt64()
	return count == 1, err
}

func (r *respStore) ready() error {
	return r.client.Do(context.Background(), r.client.B().Ping().Build()).Error()
}

func (r *respStore) close() error {
	r.client.Close()
	return nil
}
