"""A stand-in for vLLM over several hosts, and for Ray: the same command lines, and processes that really meet.

Native: the head listens at --master-addr:--master-port until its workers have come, and serves then; a worker goes when the
head goes. Ray: `ray start` keeps a list of GPUs, `ray status` asks for it, and the server begins when they suffice. Each process
says its arguments and what of its environment counts, as one line of JSON.
"""

import json
import os
import socket
import sys
import threading
import time
from http.server import ThreadingHTTPServer

from toy_engine import Handler

TOLD = ("VLLM_HOST_IP", "HF_HUB_OFFLINE", "HOME", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "RAY_ADDRESS",
        "RAY_USAGE_STATS_ENABLED", "VLLM_API_KEY", "CUDA_VISIBLE_DEVICES")  # fmt: skip


def option(name, default=None):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def tell():
    env = {name: os.environ[name] for name in TOLD if name in os.environ}
    print(json.dumps({"argv": sys.argv[1:], "env": env}), flush=True)


def split(address):
    host, _, port = address.rpartition(":")
    return host, int(port)


def reach(address):
    for _ in range(300):
        try:
            return socket.create_connection(address, 5)
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"nobody at {address}")


def listen(port):
    return socket.create_server(("127.0.0.1", port), backlog=50)


def serve():
    if "VLLM_API_KEY" in os.environ:
        os.environ["LLAMA_API_KEY"] = os.environ["VLLM_API_KEY"]
    ThreadingHTTPServer.daemon_threads = True
    host = option("--host")
    ThreadingHTTPServer((host, int(option("--port"))), Handler).serve_forever()


def vllm():
    tell()
    wanted = int(option("--tensor-parallel-size", 1)) * int(option("--pipeline-parallel-size", 1))
    if option("--distributed-executor-backend") == "ray":
        address = split(os.environ["RAY_ADDRESS"])
        while True:
            with reach(address) as line:
                line.sendall(b"status\n")
                if int(line.makefile().readline()) >= wanted:
                    break
            time.sleep(0.1)
    elif "--headless" in sys.argv:
        if sys.argv[1] != "serve":
            raise SystemExit("the API server's module does not know --headless")
        line = reach((option("--master-addr"), int(option("--master-port"))))
        line.sendall(f"{option('--node-rank')}\n".encode())
        line.settimeout(None)
        line.recv(1)
        raise SystemExit("the head is gone")
    elif "--nnodes" in sys.argv:
        server, came = listen(int(option("--master-port"))), {}
        while len(came) < int(option("--nnodes")) - 1:
            line = server.accept()[0]
            came[line.makefile().readline().strip()] = line
    serve()


def ray():
    if sys.argv[1] == "status":
        try:
            with socket.create_connection(split(option("--address")), 2) as line:
                line.sendall(b"status\n")
                raise SystemExit(0 if line.makefile().readline() else 1)
        except OSError:
            raise SystemExit(1) from None
    tell()
    own = int(option("--num-gpus"))
    if "--head" not in sys.argv:
        line = reach(split(option("--address")))
        line.sendall(f"join {own}\n".encode())
        line.settimeout(None)
        line.recv(1)
        raise SystemExit("the head is gone")
    gpus, server = [own], listen(int(option("--port")))
    kept = []

    def answer(line):
        words = line.makefile().readline().split()
        if words[:1] == ["join"]:
            gpus.append(int(words[1]))
            kept.append(line)
        else:
            line.sendall(f"{sum(gpus)}\n".encode())
            line.close()

    while True:
        threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()
