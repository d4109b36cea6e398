// Read a topic from the beginning with franz-go: `franz SERVERS TOPIC PARTITIONS RECORDS`.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	partitions, wanted := number(os.Args[3]), number(os.Args[4])
	began, used := time.Now(), cpuSeconds()
	count := read(strings.Split(os.Args[1], ","), os.Args[2], partitions, wanted)
	fmt.Println(count, time.Since(began).Seconds(), cpuSeconds()-used)
}

func read(servers []string, topic string, partitions, wanted int) (count int) {
	offsets := map[int32]kgo.Offset{}
	for partition := 0; partition < partitions; partition++ {
		offsets[int32(partition)] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(servers...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	size := 0
	for count < wanted {
		fetches := client.PollRecords(context.Background(), 10_000)
		if errs := fetches.Errors(); len(errs) > 0 {
			log.Fatal(errs)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			count++
			size += len(record.Value)
		})
	}
	if size != 100*count {
		log.Fatal("a record is not what was written")
	}
	return count
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
