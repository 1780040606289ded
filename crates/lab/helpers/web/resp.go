package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

type respStore struct {
	client *redis.Client
}

// connectResp makes a pool of connections, as large as the client's makers advise.
func connectResp(address string) (store, error) {
	client := redis.NewClient(&redis.Options{
		Addr:            address,
		Protocol:        2,
		DisableIdentity: true,
	})
	deadline := time.Now().Add(patience)
	for {
		err := client.Ping(context.Background()).Err()
		if err == nil || time.Now().After(deadline) {
			return &respStore{client}, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (r *respStore) set(key string, value []byte) error {
	return r.client.Set(context.Background(), key, value, 0).Err()
}

func (r *respStore) get(key string) ([]byte, error) {
	value, err := r.client.Get(context.Background(), key).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, errAbsent
	}
	return value, err
}

func (r *respStore) delete(key string) (bool, error) {
	count, err := r.client.Del(context.Background(), key).Result()
	return count == 1, err
}

func (r *respStore) ready() error { return r.client.Ping(context.Background()).Err() }

func (r *respStore) close() error { return r.client.Close() }
