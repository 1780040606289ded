package main

import (
	"errors"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"
)

type levelDB struct {
	db    *leveldb.DB
	write *opt.WriteOptions
}

func openLevelDB(path string, sync bool) (store, error) {
	db, err := leveldb.OpenFile(path, nil)
	return &levelDB{db, &opt.WriteOptions{Sync: sync}}, err
}

func (l *levelDB) set(key string, value []byte) error {
	return l.db.Put([]byte(key), value, l.write)
}

func (l *levelDB) get(key string) ([]byte, error) {
	value, err := l.db.Get([]byte(key), nil)
	if errors.Is(err, leveldb.ErrNotFound) {
		return nil, errAbsent
	}
	return value, err
}

// LevelDB's delete does not say whether there was something.
func (l *levelDB) delete(key string) (bool, error) {
	was, err := l.db.Has([]byte(key), nil)
	if err != nil || !was {
		return was, err
	}
	return true, l.db.Delete([]byte(key), l.write)
}

func (l *levelDB) ready() error { return nil }

func (l *levelDB) close() error { return l.db.Close() }
