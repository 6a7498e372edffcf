module volt/bench/go-tls

go 1.26.0
