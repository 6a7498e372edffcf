// SPDX-License-Identifier: MIT OR 0BSD

package main

import (
	"strconv"
	"strings"
	"sync"
)

// Redis' protocol as bench/servers/serve.h has it: PING, SET and GET on a table in memory.

const (
	maxWords = 3
	longest  = 4096
)

// In place of the length of a request: it has not come whole, or never will.
const (
	more   = -1
	broken = -2
)

var table = struct {
	sync.Mutex
	values map[string][]byte
}{values: map[string][]byte{}}

// "*3\r\n" or "$5\r\n" at `at`. Gives the number, more or broken, and where it ends.
func parseNumber(input []byte, at int, mark byte) (n, end int) {
	if at < len(input) && input[at] != mark {
		return broken, at
	}
	for at++; at < len(input) && input[at] >= '0' && input[at] <= '9'; at++ {
		if n = n*10 + int(input[at]-'0'); n > longest {
			return broken, at
		}
	}
	if at+2 > len(input) {
		return more, at
	}
	if input[at] != '\r' || input[at+1] != '\n' {
		return broken, at
	}
	return n, at + 2
}

func is(word []byte, name string) bool {
	return len(word) == len(name) && strings.EqualFold(string(word), name)
}

func set(key, value []byte) {
	table.Lock()
	defer table.Unlock()
	if old, ok := table.values[string(key)]; ok && len(old) == len(value) {
		copy(old, value)
		return
	}
	table.values[string(key)] = append([]byte(nil), value...)
}

func appendGet(output, key []byte) []byte {
	table.Lock()
	defer table.Unlock()
	value, ok := table.values[string(key)]
	if !ok {
		return append(output, "$-1\r\n"...)
	}
	output = append(output, '$')
	output = strconv.AppendInt(output, int64(len(value)), 10)
	output = append(output, "\r\n"...)
	output = append(output, value...)
	return append(output, "\r\n"...)
}

func command(words [][]byte, output []byte) []byte {
	switch {
	case len(words) == 1 && is(words[0], "PING"):
		return append(output, "+PONG\r\n"...)
	case len(words) == 2 && is(words[0], "GET"):
		return appendGet(output, words[1])
	case len(words) == 3 && is(words[0], "SET"):
		set(words[1], words[2])
		return append(output, "+OK\r\n"...)
	}
	return append(output, "-ERR unknown command\r\n"...)
}

// Answers one request. Gives its length, more or broken.
func answer(input, output []byte) ([]byte, int) {
	var words [maxWords][]byte
	count, at := parseNumber(input, 0, '*')
	if count < 0 {
		return output, count
	}
	if count == 0 || count > maxWords {
		return output, broken
	}
	for i := range count {
		var n int
		if n, at = parseNumber(input, at, '$'); n < 0 {
			return output, n
		}
		if at+n+2 > len(input) {
			return output, more
		}
		if input[at+n] != '\r' || input[at+n+1] != '\n' {
			return output, broken
		}
		words[i] = input[at : at+n]
		at += n + 2
	}
	return command(words[:count], output), at
}

// Gives the bytes and the number of the requests that are answered; not ok: the input is broken.
func answerAll(input, output []byte) (out []byte, used, count int, ok bool) {
	for out = output; ; count++ {
		var n int
		if out, n = answer(input[used:], out); n < 0 {
			return out, used, count, n == more
		}
		used += n
	}
}
