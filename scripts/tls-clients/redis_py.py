"""redis-py over TLS, with a client's certificate: FOLDER PORT."""
import sys

import redis

folder, port = sys.argv[1], int(sys.argv[2])
tls = dict(host="localhost", port=port, ssl=True, ssl_ca_certs=folder + "/ca.crt")
client = redis.Redis(ssl_certfile=folder + "/client.crt", ssl_keyfile=folder + "/client.key", **tls)
client.set("python", b"x" * (1 << 20))
assert len(client.get("python")) == 1 << 20
pipe = client.pipeline(transaction=False)
for _ in range(1000):
    pipe.incr("python:count")
assert pipe.execute()[-1] == 1000
print("redis-py: ok")
try:
    redis.Redis(**tls).ping()
except redis.ConnectionError:
    print("redis-py without a certificate: refused")
else:
    sys.exit("redis-py without a certificate was let in")
