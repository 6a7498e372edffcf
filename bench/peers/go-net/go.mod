module volt/bench/go-net

go 1.26
