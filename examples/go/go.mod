module ptc.example/agent

go 1.21
