// SPDX-License-Identifier: MIT OR 0BSD

// The server of bench/tls/tls_server.c in Go: crypto/tls, and a goroutine for each connection.
//
//	go-tls CHAIN KEY [SECONDS]
//
// It runs on one thread at a time. All else, and what it prints at its end, is as there.
package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

const bufferSize = 16384

var requests, bytes atomic.Int64

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "go-tls:", err)
		os.Exit(1)
	}
}

func serve(c *tls.Conn) {
	defer c.Close()
	buffer := make([]byte, bufferSize)
	for {
		n, err := c.Read(buffer)
		if err != nil {
			return
		}
		if _, err = c.Write(buffer[:n]); err != nil {
			return
		}
		requests.Add(1)
		bytes.Add(int64(n))
	}
}

func accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go serve(c.(*tls.Conn))
	}
}

func main() {
	runtime.GOMAXPROCS(1)
	if len(os.Args) < 3 || len(os.Args) > 4 {
		fmt.Fprintln(os.Stderr, "usage: go-tls CHAIN KEY [SECONDS]")
		os.Exit(1)
	}
	seconds := 300
	if len(os.Args) > 3 {
		n, err := strconv.Atoi(os.Args[3])
		check(err)
		seconds = n
	}
	time.AfterFunc(time.Duration(seconds)*time.Second, func() { os.Exit(2) })
	pair, err := tls.LoadX509KeyPair(os.Args[1], os.Args[2])
	check(err)
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	check(err)
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	fmt.Printf("port %d\n", l.Addr().(*net.TCPAddr).Port)
	go accept(l)
	<-term
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	fmt.Printf("requests %d\nbytes %d\ncpu_us %d\nwakes %d\n", requests.Load(), bytes.Load(),
		(u.Utime.Nano()+u.Stime.Nano())/1000, u.Nvcsw)
}
