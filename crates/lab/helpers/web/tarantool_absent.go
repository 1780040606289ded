//go:build !tarantool

package main

import "errors"

// The connector is a module of its own that only this store needs, so the other two are built
// without it where it cannot be had.
func connectTarantool(string) (store, error) {
	return nil, errors.New("built without the store tarantool")
}
