#!/usr/bin/env python3
"""Makes the two v2 traces in this folder, from the facts of SimKube 2 traces and nothing of the Rust code.

So they are a second opinion: encoder and hashes (MessagePack, SipHash-1-3) are written again here, and the tests compare
what the readers and hashers of this repository make of the files. The workloads are invented. Between them they have
what v2 files of different ages have: a start state in event 0 or in a second event of the same second, deletes by name
and deletes with the whole object, running and finished lives, an index with objects that are not in the file.

    python3 make.py     # writes cron-job.sktrace and bare-pods.sktrace beside itself; the same bytes each time
"""

import pathlib
import struct

HERE = pathlib.Path(__file__).parent
START = 1_767_603_600  # 2026-01-05T09:00:00Z, a Monday


class U64(int):
    """A hash: always eight bytes, as Rust writes what is large."""


def pack(value):
    """MessagePack in its shortest forms; a list of pairs under Pairs is a map whose keys are no texts."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return pack_int(value)
    if isinstance(value, str):
        raw = value.encode()
        return head(len(raw), 0xA0, 32, [(0xD9, ">B"), (0xDA, ">H"), (0xDB, ">I")]) + raw
    if isinstance(value, Pairs):
        return head(len(value), 0x80, 16, [(0xDE, ">H"), (0xDF, ">I")]) + b"".join(pack(k) + pack(v) for k, v in value)
    if isinstance(value, dict):
        return pack(Pairs(value.items()))
    if isinstance(value, list):
        return head(len(value), 0x90, 16, [(0xDC, ">H"), (0xDD, ">I")]) + b"".join(map(pack, value))
    raise TypeError(type(value))


class Pairs(list):
    pass


def pack_int(n):
    if 0 <= n < 0x80:
        return bytes([n])
    for tag, form, most in [(0xCC, ">B", 0xFF), (0xCD, ">H", 0xFFFF), (0xCE, ">I", 0xFFFFFFFF), (0xCF, ">Q", 2**64 - 1)]:
        if 0 <= n <= most:
            return bytes([tag]) + struct.pack(form, n)
    raise ValueError(n)


def head(length, small, below, larger):
    if length < below:
        return bytes([small | length])
    for tag, form in larger:
        try:
            return bytes([tag]) + struct.pack(form, length)
        except struct.error:
            continue
    raise ValueError(length)


def siphash13(data):
    """SipHash-1-3 with the key 0, 0."""
    mask = 2**64 - 1
    v = [0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573]

    def rotate(x, by):
        return ((x << by) | (x >> (64 - by))) & mask

    def rounds(count):
        for _ in range(count):
            v[0] = (v[0] + v[1]) & mask
            v[1] = rotate(v[1], 13) ^ v[0]
            v[0] = rotate(v[0], 32)
            v[2] = (v[2] + v[3]) & mask
            v[3] = rotate(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & mask
            v[3] = rotate(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & mask
            v[1] = rotate(v[1], 17) ^ v[2]
            v[2] = rotate(v[2], 32)

    whole = len(data) // 8 * 8
    words = [struct.unpack_from("<Q", data, at)[0] for at in range(0, whole, 8)]
    words.append(int.from_bytes(data[whole:], "little") | (len(data) & 0xFF) << 56)
    for word in words:
        v[3] ^= word
        rounds(1)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(3)
    return U64(v[0] ^ v[1] ^ v[2] ^ v[3])


def walk(value):
    """The bytes that are hashed of a value."""
    if value is None:
        return bytes(8)
    if isinstance(value, bool):
        return bytes([value])
    if isinstance(value, int):
        return struct.pack("<q", value)
    if isinstance(value, str):
        return value.encode() + b"\xff"
    if isinstance(value, list):
        return b"".join(map(walk, value))
    return b"".join(walk(key) + walk(value[key]) for key in sorted(value))


def stable_hash(value):
    return siphash13(walk(value))


def pod_hash(spec):
    """The hash of a pod's spec without what clusters add."""
    spec = {k: v for k, v in spec.items() if k not in ("nodeName", "serviceAccount", "serviceAccountName")}
    tokens = lambda thing: thing["name"].startswith("kube-api-access")
    spec["volumes"] = [volume for volume in spec.get("volumes", []) if not tokens(volume)]
    for kind in ("containers", "initContainers"):
        if kind not in spec:
            continue
        spec[kind] = [dict(container) for container in spec[kind]]
        for container in spec[kind]:
            container["volumeMounts"] = [m for m in container.get("volumeMounts", []) if not tokens(m)]
            if kind == "containers":
                container.pop("ports", None)
    return stable_hash(spec)


def write(name, config, events, index, lives):
    trace = {"version": 2, "config": {"trackedObjects": config}, "events": events, "index": index}
    trace["pod_lifecycles"] = Pairs(([kind, key], Pairs(by_hash)) for kind, key, by_hash in lives)
    (HERE / name).write_bytes(pack(trace))


def event(at, applied=(), deleted=()):
    return {"ts": START + at, "applied_objs": list(applied), "deleted_objs": list(deleted)}


def cron_job():
    """A CronJob that fires every ten minutes, changed once and deleted by its name; its pods run for some minutes."""

    def job(schedule):
        container = {"command": ["/bin/tidy", "--older-than=7d"], "image": "registry.example.com/tidy:3", "name": "tidy",
                     "resources": {"requests": {"cpu": "250m", "memory": "128Mi"}}}
        pod = {"containers": [container], "dnsPolicy": "ClusterFirst", "restartPolicy": "OnFailure",
               "schedulerName": "default-scheduler", "securityContext": {}, "terminationGracePeriodSeconds": 30}
        template = {"metadata": {"labels": {"app": "tidy"}}, "spec": pod}
        return {"apiVersion": "batch/v1", "kind": "CronJob",
                "metadata": {"annotations": {}, "labels": {"team": "storage"}, "name": "tidy", "namespace": "night-jobs"},
                "spec": {"concurrencyPolicy": "Forbid", "failedJobsHistoryLimit": 1,
                         "jobTemplate": {"spec": {"backoffLimit": 2, "template": template}},
                         "schedule": schedule, "successfulJobsHistoryLimit": 3, "suspend": False}}

    def admitted(spec):
        tolerate = lambda key: {"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300}
        return {**spec, "enableServiceLinks": True, "preemptionPolicy": "PreemptLowerPriority", "priority": 0,
                "tolerations": [tolerate("node.kubernetes.io/not-ready"), tolerate("node.kubernetes.io/unreachable")]}

    first, second = job("*/10 * * * *"), job("*/15 * * * *")
    gone = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tidy", "namespace": "night-jobs"}}
    spec = first["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    ended = [{"Finished": [START + at, START + at + 130]} for at in (605, 1_204, 1_806)]
    lives = [(pod_hash(admitted(spec)), ended + [{"Running": START + 2_703}])]
    paths = ["/spec/jobTemplate/spec/template"]
    write("cron-job.sktrace",
          {"batch/v1.CronJob": {"podSpecTemplatePaths": paths, "trackLifecycle": True}},
          [event(0, [first]), event(2_400, [second]), event(3_300, [], [gone]), event(3_600)],
          {"batch/v1.CronJob": {"night-jobs/tidy": stable_hash(second["spec"])}},
          [("batch/v1.CronJob", "night-jobs/tidy", lives)])


def bare_pods():
    """Pods that nobody owns: there from the start, created together, one deleted and made again within a second."""

    def pod(name, cpu, port=None):
        token = {"name": "kube-api-access-" + name, "projected": {"defaultMode": 420, "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]}}
        mount = {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": token["name"], "readOnly": True}
        container = {"args": ["--shard", name], "image": "registry.example.com/crunch:1.4", "name": "crunch",
                     "resources": {"limits": {"memory": "1Gi"}, "requests": {"cpu": cpu, "memory": "512Mi"}},
                     "volumeMounts": [mount, {"mountPath": "/scratch", "name": "scratch"}]}
        if port:
            container["ports"] = [{"containerPort": port, "protocol": "TCP"}]
        return {"apiVersion": "v1", "kind": "Pod",
                "metadata": {"annotations": {}, "labels": {"app": "crunch", "shard": name}, "name": "crunch-" + name,
                             "namespace": "batch"},
                "spec": {"containers": [container], "priority": 0, "restartPolicy": "Never",
                         "serviceAccount": "default", "serviceAccountName": "default",
                         "tolerations": [{"effect": "NoSchedule", "key": "batch", "operator": "Exists"}],
                         "volumes": [token, {"emptyDir": {}, "name": "scratch"}]}}

    a, b, c, d = pod("a", "500m"), pod("b", "1", 8080), pod("c", "1500m"), pod("d", "250m", 9090)
    again = pod("b", "2", 8080)
    events = [event(0), event(0, [a]), event(60, [b, c]), event(61, [d]), event(300, [again], [b]),
              event(420, [], [a, c]), event(900)]
    key = lambda pod: pod["metadata"]["namespace"] + "/" + pod["metadata"]["name"]
    # Also pods that came and went before the window, as a tracer's bookkeeping has them.
    index = {"batch/crunch-" + name: stable_hash({"once": name}) for name in ("w", "x", "y", "z")}
    index.update({key(pod): stable_hash(pod["spec"]) for pod in (a, again, c, d)})
    finished = lambda start, end: {"Finished": [START + start, START + end]}
    lives = [(a, [finished(3, 415)]), (b, [finished(64, 290)]), (c, [finished(63, 418)]), (d, [{"Running": START + 66}])]
    lives = [("v1.Pod", key(pod), [(pod_hash(pod["spec"]), spans)]) for pod, spans in lives]
    lives[1][2].append((pod_hash(again["spec"]), [{"Running": START + 304}]))
    write("bare-pods.sktrace", {"v1.Pod": {"podSpecTemplatePaths": [""], "trackLifecycle": True}}, events,
          {"v1.Pod": index}, lives)


cron_job()
bare_pods()
