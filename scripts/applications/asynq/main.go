// Asynq's queues: `asynq jobs PORT` checks what they promise; `asynq crash PORT` adds and runs jobs
// for twelve seconds while somebody kills the server again and again. Exit status: failed checks.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

type silent struct{}

func (silent) Debug(...any) {}
func (silent) Info(...any)  {}
func (silent) Warn(...any)  {}
func (silent) Error(...any) {}
func (silent) Fatal(...any) {}

var failed int

func check(isRight bool, what string, details ...any) {
	word := "ok  "
	if !isRight {
		word, failed = "FAIL", failed+1
	} else {
		details = nil
	}
	fmt.Println(append([]any{word, what}, details...)...)
}

// Waits for something to become true.
func until(seconds int, is func() bool) bool {
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
		if is() {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return is()
}

// How often each task ran.
type runs struct {
	sync.Mutex
	of map[string]int
}

func (r *runs) add(id string) int {
	r.Lock()
	defer r.Unlock()
	r.of[id]++
	return r.of[id]
}

func (r *runs) all(wanted int, ids ...string) bool {
	r.Lock()
	defer r.Unlock()
	for _, id := range ids {
		if r.of[id] != wanted {
			return false
		}
	}
	return true
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "asynq jobs|crash PORT")
		os.Exit(2)
	}
	redis := asynq.RedisClientOpt{Addr: "127.0.0.1:" + os.Args[2]}
	if os.Args[1] == "crash" {
		crash(redis)
	} else {
		jobs(redis)
	}
	os.Exit(failed)
}

func jobs(redis asynq.RedisClientOpt) {
	client, inspector := asynq.NewClient(redis), asynq.NewInspector(redis)
	defer client.Close()
	defer inspector.Close()
	ran := &runs{of: map[string]int{}}
	var order []string
	var orderLock sync.Mutex
	canceled := make(chan bool, 1)
	var grouped atomic.Int64
	mux := asynq.NewServeMux()
	mux.HandleFunc("work", func(ctx context.Context, task *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		ran.add(id)
		_, err := task.ResultWriter().Write([]byte("did " + string(task.Payload())))
		return err
	})
	mux.HandleFunc("twice-wrong", func(ctx context.Context, _ *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		if ran.add(id) < 3 {
			return errors.New("on purpose")
		}
		return nil
	})
	mux.HandleFunc("hopeless", func(ctx context.Context, _ *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		if ran.add(id) == 1 {
			return fmt.Errorf("on purpose: %w", asynq.SkipRetry)
		}
		return nil
	})
	mux.HandleFunc("ordered", func(_ context.Context, task *asynq.Task) error {
		orderLock.Lock()
		defer orderLock.Unlock()
		order = append(order, string(task.Payload()))
		return nil
	})
	mux.HandleFunc("long", func(ctx context.Context, _ *asynq.Task) error {
		select {
		case <-ctx.Done():
			canceled <- true
		case <-time.After(30 * time.Second):
			canceled <- false
		}
		return asynq.SkipRetry
	})
	mux.HandleFunc("sum", func(_ context.Context, task *asynq.Task) error {
		grouped.Add(int64(len(task.Payload())))
		return nil
	})
	enqueue := func(kind, payload string, options ...asynq.Option) *asynq.TaskInfo {
		info, err := client.Enqueue(asynq.NewTask(kind, []byte(payload)), options...)
		if err != nil {
			check(false, "enqueued", kind, err)
			return &asynq.TaskInfo{}
		}
		return info
	}

	// Before any server runs: what is urgent comes first all the same.
	for n := range 5 {
		enqueue("ordered", fmt.Sprint("low", n), asynq.Queue("low"))
	}
	for n := range 5 {
		enqueue("ordered", fmt.Sprint("high", n), asynq.Queue("high"))
	}
	_, first := client.Enqueue(asynq.NewTask("work", []byte("only once")), asynq.Unique(time.Minute))
	_, second := client.Enqueue(asynq.NewTask("work", []byte("only once")), asynq.Unique(time.Minute))
	check(first == nil && errors.Is(second, asynq.ErrDuplicateTask), "a unique task", first, second)
	enqueue("work", "named", asynq.TaskID("name"), asynq.Retention(time.Hour))
	_, again := client.Enqueue(asynq.NewTask("work", nil), asynq.TaskID("name"))
	check(errors.Is(again, asynq.ErrTaskIDConflict), "a task's name is taken", again)

	server := asynq.NewServer(redis, asynq.Config{
		Concurrency: 1, StrictPriority: true, Logger: silent{},
		Queues: map[string]int{"high": 2, "low": 1},
	})
	check(server.Start(mux) == nil, "a server starts")
	until(20, func() bool { orderLock.Lock(); defer orderLock.Unlock(); return len(order) == 10 })
	server.Shutdown()
	wanted := "[high0 high1 high2 high3 high4 low0 low1 low2 low3 low4]"
	check(fmt.Sprint(order) == wanted, "strict priorities", order)

	server = asynq.NewServer(redis, asynq.Config{
		Concurrency: 10, Logger: silent{}, Queues: map[string]int{"default": 1},
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 100 * time.Millisecond },
		DelayedTaskCheckInterval: 100 * time.Millisecond,
		GroupGracePeriod:         time.Second, GroupMaxSize: 1000,
		GroupAggregator: asynq.GroupAggregatorFunc(func(_ string, tasks []*asynq.Task) *asynq.Task {
			var all []byte
			for _, task := range tasks {
				all = append(all, task.Payload()...)
			}
			return asynq.NewTask("sum", all)
		}),
	})
	check(server.Start(mux) == nil, "another one starts")
	defer server.Shutdown()
	many := make([]string, 300)
	for n := range many {
		many[n] = enqueue("work", fmt.Sprint(n), asynq.Retention(time.Hour)).ID
	}
	retried := enqueue("twice-wrong", "").ID
	hopeless := enqueue("hopeless", "", asynq.MaxRetry(5)).ID
	later := enqueue("work", "later", asynq.ProcessIn(6*time.Second)).ID
	long := enqueue("long", "", asynq.MaxRetry(0)).ID
	for range 20 {
		enqueue("sum", "x", asynq.Group("g"))
	}
	check(until(30, func() bool { return ran.all(1, many...) }), "300 tasks ran")
	check(ran.all(0, later), "a task of later waits")
	result, err := inspector.GetTaskInfo("default", many[7])
	check(err == nil && string(result.Result) == "did 7", "a result", err)
	check(until(10, func() bool { return ran.all(3, retried) }), "retried until it worked")
	check(until(20, func() bool { return ran.all(1, later) }), "what was for later ran")
	check(until(10, func() bool { return grouped.Load() == 20 }), "20 tasks as one", grouped.Load())
	archived, err := inspector.ListArchivedTasks("default")
	check(err == nil && len(archived) == 1 && archived[0].ID == hopeless, "what is hopeless", err)
	check(inspector.RunTask("default", hopeless) == nil, "it may run again")
	check(until(10, func() bool { return ran.all(2, hopeless) }), "and does")
	check(inspector.CancelProcessing(long) == nil, "a running task is told to stop")
	select {
	case was := <-canceled:
		check(was, "it stopped")
	case <-time.After(20 * time.Second):
		check(false, "it stopped")
	}
	check(inspector.PauseQueue("default") == nil, "a queue pauses")
	time.Sleep(1200 * time.Millisecond)
	paused := enqueue("work", "paused").ID
	time.Sleep(time.Second)
	check(ran.all(0, paused), "nothing runs")
	check(inspector.UnpauseQueue("default") == nil, "it goes on")
	check(until(20, func() bool { return ran.all(1, paused) }), "what waited runs")
	scheduler := asynq.NewScheduler(redis, &asynq.SchedulerOpts{Logger: silent{}})
	_, err = scheduler.Register("@every 1s", asynq.NewTask("sum", []byte("periodic")))
	check(err == nil && scheduler.Start() == nil, "a scheduler starts", err)
	check(until(10, func() bool { return grouped.Load() >= 20+2*8 }), "two periodic tasks")
	scheduler.Shutdown()
	check(ran.all(1, many...), "nothing ran twice")
	queue, err := inspector.GetQueueInfo("default")
	check(err == nil && queue.Failed == 4 && queue.Archived == 1, "the queue's numbers", queue, err)
}

// Asynq promises that a task runs at least once. With a name, a task is added once however often
// its producer has to ask.
func crash(redis asynq.RedisClientOpt) {
	redis.DialTimeout = 500 * time.Millisecond
	client, inspector := asynq.NewClient(redis), asynq.NewInspector(redis)
	ran := &runs{of: map[string]int{}}
	server := asynq.NewServer(redis, asynq.Config{
		Concurrency: 10, Logger: silent{}, DelayedTaskCheckInterval: 200 * time.Millisecond,
		HealthCheckInterval: time.Second,
	})
	mux := asynq.NewServeMux()
	mux.HandleFunc("work", func(ctx context.Context, _ *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		ran.add(id)
		time.Sleep(2 * time.Millisecond)
		return nil
	})
	check(server.Start(mux) == nil, "a server starts")
	var names []string
	unknown, taken := 0, 0
	for end := time.Now().Add(12 * time.Second); time.Now().Before(end); {
		name := fmt.Sprint("job", len(names))
		_, err := client.Enqueue(asynq.NewTask("work", nil), asynq.TaskID(name),
			asynq.Retention(time.Hour), asynq.MaxRetry(20), asynq.Timeout(5*time.Second))
		switch {
		case errors.Is(err, asynq.ErrTaskIDConflict):
			taken++
			names = append(names, name)
		case err != nil:
			unknown++
			time.Sleep(50 * time.Millisecond)
		default:
			names = append(names, name)
		}
		if len(names)%10 == 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
	// What a worker took when the server died, without having read the answer, is given to another
	// one half a minute after its lease of half a minute; asynq looks for that once a minute.
	done := func() bool {
		info, err := inspector.GetQueueInfo("default")
		return err == nil && info.Pending+info.Active+info.Retry == 0 && info.Completed == len(names)
	}
	check(until(150, done), "everything that was acknowledged is done")
	server.Shutdown()
	lost, more := 0, 0
	for _, name := range names {
		if ran.all(0, name) {
			lost++
		} else if !ran.all(1, name) {
			more++
		}
	}
	info, err := inspector.GetQueueInfo("default")
	check(err == nil && info.Completed == len(names), "each of them once", info, err)
	check(lost == 0 && len(names) >= 500, "none is lost", lost, len(names))
	fmt.Printf("%d acknowledged (%d after a second question), %d failed attempts, %d ran again\n",
		len(names), taken, unknown, more)
}
