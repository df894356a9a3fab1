#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""samples/archive over a folder and over S3: each event is archived exactly once, whatever happens.

    archive_test.py BUILD [--lives N] [TEST...]

BUILD has the tool, the sample and the preloaded library. Tests that mount, or make process namespaces, need root.
"""
import collections
import gzip
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from s3_server import KEYS, Proxy, Server, own_mounts

BUILD, LIVES = None, 6
needs_root = unittest.skipUnless(os.geteuid() == 0, "needs root")


def lines(count, tenants=3, size=10):
    chance = random.Random(1)
    for number in range(count):
        yield json.dumps({"tenant": f"t/{number % tenants}", "at": 1764403200000 + number * 10_000, "id": number,
                          "text": "%x" % chance.getrandbits(size * 4)})


class Folder:
    def __init__(self, path):
        self.path, self.environment = path, {}

    location = property(lambda self: str(self.path))

    def objects(self):
        return {str(file.relative_to(self.path)): file.read_bytes() for file in self.path.rglob("*") if file.is_file()}


class Bucket:
    def __init__(self, test, name="bucket", prefix="a prefix"):
        import boto3
        self.name, self.prefix = name, prefix
        self.client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{test.server.port}", region_name="us-east-1",
                                   aws_access_key_id="key", aws_secret_access_key="secret")
        self.environment = {**KEYS, "AWS_REGION": "us-east-1",
                            "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{test.proxy.port}"}

    location = property(lambda self: f"s3://{self.name}/{self.prefix}")

    def objects(self):
        found = {}
        for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=self.prefix + "/"):
            for entry in page.get("Contents", []):
                content = self.client.get_object(Bucket=self.name, Key=entry["Key"])["Body"].read()
                found[entry["Key"][len(self.prefix) + 1:]] = content
        return found


class Archive(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="kclxx-archive."))
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.running = []
        self.addCleanup(lambda: [self.kill(feed) for feed in self.running])

    def store(self, name="archive"):
        path = self.folder / name
        path.mkdir()
        return Folder(path)

    def start(self, store, text, *options, prefix=(), at=(), stream="clicks", seconds=1, **environment):
        """A feed of these lines. at: the number of a step, and what happens to the child there. The shards of all feeds
        have the same names, as those of one application's workers: a state has the names, and no position in it is kept
        but where a test names one."""
        if "--state" not in options:
            options = [*options, "--state", self.state_with_names()]
        preload = {"LD_PRELOAD": str(next(BUILD.rglob("libarchive_step.so")))}
        if at:
            preload |= {"STEP_AT": str(at[0]), "STEP_DO": at[1]}
        preload |= {name: environment.pop(name) for name in list(environment) if name.startswith("STEP_")}
        child = ["/usr/bin/env", *(f"{name}={value}" for name, value in preload.items()),
                 str(BUILD / "samples/archive/archive"), store.location, str(seconds)]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        with tempfile.TemporaryFile() as source, open(self.folder / "log", "ab") as log:
            source.write("".join(line + "\n" for line in text).encode())
            source.seek(0)
            feed = subprocess.Popen([*prefix, BUILD / "src/tool/kclxx", "feed", *options, "--", *child], stdin=source,
                                    stdout=subprocess.DEVNULL, stderr=log, start_new_session=True,
                                    env={**clean, "AWS_EC2_METADATA_DISABLED": "true", "KCLXX_STREAM_NAME": stream,
                                         "KCLXX_APPLICATION_NAME": "archiver", **store.environment, **environment})
        self.running.append(feed)
        return feed

    def state_with_names(self):
        names = self.folder / "names"
        if not names.exists():
            subprocess.run([BUILD / "src/tool/kclxx", "feed", "--state", names, "--", BUILD / "samples/archive/archive",
                            tempfile.mkdtemp(dir=self.folder)], stdin=subprocess.DEVNULL, capture_output=True, check=True)
        state = tempfile.mkdtemp(dir=self.folder)
        shutil.copy(names / "feed", state)
        return state

    def kill(self, feed):
        # The child may be in a session of its own; it ends with its input, unless it is suspended.
        for child in self.children(feed.pid):
            self.send(child, signal.SIGKILL)
        self.send(feed.pid, signal.SIGKILL)
        feed.wait()

    @staticmethod
    def send(process, number):
        try:
            os.kill(process, number)
        except ProcessLookupError:
            pass

    def children(self, process):
        found = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True).stdout.split("\n")
        parents = [tuple(map(int, line.split())) for line in found if line.strip()]
        direct = [child for child, parent in parents if parent == process]
        return direct + [inner for child in direct for inner in self.children(child)]

    def finish(self, store, text, *options, **arguments):
        feed = self.start(store, text, *options, **arguments)
        self.assertEqual(0, feed.wait(120), self.log())
        return feed

    def log(self):
        return (self.folder / "log").read_text()

    def wait_for(self, condition, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline, what + "\n" + self.log()[-3000:])
            time.sleep(0.05)

    def assert_exactly_once(self, store, count, is_clean=True):
        archived = collections.Counter()
        objects = store.objects()
        for name, content in objects.items():
            if not name.startswith("_kclxx"):
                for line in gzip.decompress(content).splitlines():
                    event = json.loads(line)
                    hour = time.strftime("date=%Y-%m-%d/hour=%H", time.gmtime(event["at"] / 1000))
                    self.assertTrue(name.startswith(f"tenant={event['tenant'].replace('/', '%2F')}/{hour}/"), name)
                    archived[event["id"]] += 1
        self.assertEqual([], [id for id, times in archived.items() if times > 1], "archived twice")
        self.assertEqual([], sorted(set(range(count)) - set(archived)), "missing")
        if is_clean:
            staged = [name for name in objects if name.startswith("_kclxx") and not name.startswith("_kclxx_parked/") and
                      name != "_kclxx.probe" and not re.search(r"/\d{12}$", name)]
            self.assertEqual([], staged)

    def assert_none_is_covered(self):
        for file in (self.folder / "state").rglob("*position"):
            self.assertIn(file.read_text().strip(), ("", "TRIM_HORIZON/0"), file)

    # The tests below run for both stores.
    def test_lives_and_suspensions_leave_nothing_out_and_nothing_twice(self):
        store, text, chance = self.store(), list(lines(2000)), random.Random(7)
        for life in range(LIVES):
            feeds = [self.start(store, text, "--rate", "1000", "--batch", str(size)) for size in (70, 110)]
            time.sleep(chance.uniform(0.3, 1.5))
            suspended = self.children(feeds[0].pid)
            for process in suspended:
                self.send(process, signal.SIGSTOP)
            time.sleep(chance.uniform(0.3, 1.5))
            for process in suspended:
                self.send(process, signal.SIGCONT)
            time.sleep(chance.uniform(0, 0.3))
            for feed in feeds:
                self.kill(feed)
        self.finish(store, text)
        self.assert_exactly_once(store, 2000)

    def test_many_files_in_a_commit(self):
        store = self.store()
        self.finish(store, lines(1500, tenants=1500))
        self.assert_exactly_once(store, 1500)


class FolderArchive(Archive):
    def test_a_kill_at_each_step(self):
        for action in ("kill", "kill-after"):
            for step in range(1, 40):
                store, text = self.store(f"{action}-{step}"), list(lines(40, tenants=2))
                feed = self.start(store, text, at=(step, action))
                is_killed = feed.wait(60) != 0
                self.finish(store, text)
                self.assert_exactly_once(store, 40)
                if not is_killed:
                    break
            self.assertGreater(step, 10)

    def test_a_worker_suspended_at_each_step(self):
        text = list(lines(40, tenants=2))
        for step in range(1, 30, 2):
            store = self.store(f"stop-{step}")
            suspended = self.start(store, text, at=(step, "stop"))
            self.wait_for(lambda: suspended.poll() is not None or self.stopped(suspended), "no step")
            self.finish(store, text[:25])
            self.finish(store, text)
            for process in self.stopped(suspended):
                self.send(process, signal.SIGCONT)
            self.assertEqual(0, suspended.wait(60))
            self.assert_exactly_once(store, 40)

    def stopped(self, feed):
        states = subprocess.run(["ps", "-e", "-o", "pid=,stat="], capture_output=True, text=True).stdout
        stopped = {int(line.split()[0]) for line in states.splitlines() if line.split()[1].startswith("T")}
        return [process for process in self.children(feed.pid) if process in stopped]

    @needs_root
    def test_equal_process_numbers(self):
        store, text = self.store(), list(lines(6, tenants=1))
        isolated = ["unshare", "--pid", "--fork", "--mount-proc"]
        feeds = [self.start(store, text, prefix=isolated, STEP_LINK_SECONDS=2),
                 self.start(store, text[:3], prefix=isolated, STEP_LINK_SECONDS=4)]
        self.assertEqual([0, 0], [feed.wait(60) for feed in feeds], self.log())
        self.assert_exactly_once(store, 6)

    def mounted(self, name, *options):
        own_mounts()
        path = self.folder / name
        path.mkdir()
        subprocess.run(["mount", *options, path], check=True)
        self.addCleanup(subprocess.run, ["umount", "--lazy", path], stderr=subprocess.DEVNULL)
        return path

    @needs_root
    def test_a_full_disk_waits_and_then_gets_on(self):
        disk = self.mounted("disk", "-t", "tmpfs", "-o", "size=900k", "kclxx-archive")
        filler = disk / "filler"
        filler.write_bytes(os.urandom(516 << 10))
        store = Folder(disk / "archive")
        store.path.mkdir()
        text = list(lines(480, tenants=1, size=2800))
        first = self.start(store, text, "--state", str(self.folder / "state"))
        self.wait_for(lambda: "No space left" in self.log(), "the disk is not full")
        time.sleep(2)
        self.kill(first)
        second = self.start(store, text, "--state", str(self.folder / "state"))
        time.sleep(1)
        self.assert_none_is_covered()
        filler.unlink()
        self.assertEqual(0, second.wait(120), self.log())
        self.assert_exactly_once(store, 480)

    @needs_root
    def test_an_unmounted_volume_is_an_outage(self):
        volume = self.folder / "volume"
        (volume / "sub").mkdir(parents=True)
        place = self.mounted("place", "--bind", volume)
        text = list(lines(3000))
        feed = self.start(Folder(place / "sub"), text, "--rate", "500")
        time.sleep(3)
        subprocess.run(["umount", "--lazy", place], check=True)
        self.wait_for(lambda: "the archive is gone" in self.log(), "nothing is said")
        self.assertEqual([], list(place.iterdir()))
        subprocess.run(["mount", "--bind", volume, place], check=True)
        self.assertEqual(0, feed.wait(120), self.log())
        self.assert_exactly_once(Folder(volume / "sub"), 3000)

    @needs_root
    def test_a_read_only_folder_is_an_outage(self):
        disk = self.mounted("disk", "-t", "tmpfs", "-o", "ro", "kclxx-archive")
        feed = self.start(Folder(disk), lines(10), "--state", str(self.folder / "state"))
        self.wait_for(lambda: "Read-only file system" in self.log(), "nothing is said")
        self.assert_none_is_covered()
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        self.assertEqual(0, feed.wait(120), self.log())
        self.assert_exactly_once(Folder(disk), 10)


class S3Archive(Archive):
    @classmethod
    def setUpClass(cls):
        cls.server_folder = Path(tempfile.mkdtemp(prefix="kclxx-s3."))
        cls.server = Server(BUILD / "s3_server", cls.server_folder)
        cls.buckets = 0

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        shutil.rmtree(cls.server_folder)

    def setUp(self):
        super().setUp()
        self.proxy = Proxy(self.server.port)
        self.addCleanup(self.proxy.stop)

    def store(self, name="a prefix"):
        bucket = Bucket(self, f"bucket-{S3Archive.buckets}", name)
        S3Archive.buckets += 1
        bucket.client.create_bucket(Bucket=bucket.name)
        return bucket

    def test_a_network_that_fails(self):
        for seed in range(LIVES):
            store, text = self.store(), list(lines(400))
            self.proxy.at_random(seed, 0.15)
            feeds = [self.start(store, text, "--rate", "200"), self.start(store, text)]
            self.assertEqual([0, 0], [feed.wait(120) for feed in feeds], self.log())
            self.proxy.fault = lambda number, method: None
            self.finish(store, text)
            self.finish(store, [*text, list(lines(401))[400]])  # a commit cleans up
            self.assert_exactly_once(store, 401)

    def test_a_kill_at_each_request(self):
        text = list(lines(40, tenants=2))
        for is_after in (False, True):
            for step in range(1, 40):
                store = self.store()
                self.proxy.methods.clear()
                met = threading.Event()

                def fault(number, method):
                    if number == step:
                        met.set()
                        return "lose" if is_after else "refuse"
                    return None
                self.proxy.fault = fault
                feed = self.start(store, text)
                self.wait_for(lambda: met.is_set() or feed.poll() is not None, "no request")
                if not met.is_set():
                    break
                if is_after:
                    time.sleep(0.03)
                self.kill(feed)
                self.proxy.fault = lambda number, method: None
                self.finish(store, text)
                self.assert_exactly_once(store, 40)
            self.assertGreater(step, 10)

    def test_a_commit_has_as_many_requests_as_cost_of_says(self):
        store, text = self.store(), list(lines(40, tenants=2))
        self.finish(store, text, stream="orders")  # finds out about If-None-Match
        self.proxy.methods.clear()
        self.finish(store, text)
        counts = collections.Counter(self.proxy.methods)
        files = 2  # two tenants, one hour
        self.assertEqual((files + 1 + 1, files), (counts["PUT"], counts["COPY"]), counts)  # and the probe
        self.assertEqual(files, counts["DELETE"])

    def test_what_is_wrong_is_said_and_the_shard_waits(self):
        good = self.store()
        cases = {"NoSuchBucket": {"location": "nowhere"}, "no AWS credentials": {"AWS_ACCESS_KEY_ID": ""},
                 "Couldn't connect": {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1"}}
        if self.server.checks_signatures:
            cases |= {"SignatureDoesNotMatch": {"AWS_SECRET_ACCESS_KEY": "wrong"},
                      "us-east-1": {"AWS_REGION": "eu-west-1"}, "RequestTimeTooSkewed": {"STEP_CLOCK_SECONDS": "3600"}}
        for reason, change in cases.items():
            with self.subTest(reason):
                (self.folder / "log").write_text("")
                store = Bucket(self, change.pop("location", good.name))
                feed = self.start(store, lines(10), "--state", str(self.folder / "state"), **change)
                self.wait_for(lambda: reason in self.log(), reason)
                self.assertIsNone(feed.poll())
                self.kill(feed)
                self.assertEqual([], [name for name in good.objects() if name != "_kclxx.probe"])
                self.assert_none_is_covered()

    def test_credentials_of_containers_instances_and_web_identities_are_renewed(self):
        asked = collections.Counter()
        (self.folder / "token").write_text("a token\n")

        class Handler(BaseHTTPRequestHandler):
            log_message = lambda self, *_: None

            def do_PUT(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.answer("an instance's token" if self.headers["X-aws-ec2-metadata-token-ttl-seconds"] else "")

            def do_GET(self):
                path = self.path.split("?")[0]
                asked[path] += 1
                # They expire so soon that each request asks for them again.
                expiry = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60))
                keys = json.dumps({"AccessKeyId": "key", "SecretAccessKey": "secret", "Token": "", "Expiration": expiry})
                if path == "/container" and self.headers["Authorization"] == "a token":
                    self.answer(keys)
                elif path == "/latest/meta-data/iam/security-credentials/" and self.headers["X-aws-ec2-metadata-token"]:
                    self.answer("a-role\n")
                elif path == "/latest/meta-data/iam/security-credentials/a-role":
                    self.answer(keys)
                elif path == "/" and "WebIdentityToken=a%20token" in self.path and "RoleArn=arn%3Aaws" in self.path:
                    self.answer("<R><Credentials><AccessKeyId>key</AccessKeyId><SecretAccessKey>secret</SecretAccessKey>"
                                f"<SessionToken></SessionToken><Expiration>{expiry}</Expiration></Credentials></R>")
                else:
                    self.send_error(404)

            def do_CONNECT(self):
                asked[self.path] += 1
                self.send_error(403)

            def answer(self, text):
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

        metadata = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=metadata.serve_forever, daemon=True).start()
        self.addCleanup(metadata.server_close)
        self.addCleanup(metadata.shutdown)
        url = f"http://127.0.0.1:{metadata.server_address[1]}"
        token = str(self.folder / "token")
        sources = {"/container": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": url + "/container",
                                  "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token},
                   "/latest/meta-data/iam/security-credentials/a-role": {"AWS_EC2_METADATA_DISABLED": "false",
                                                                         "AWS_EC2_METADATA_SERVICE_ENDPOINT": url},
                   "/": {"AWS_ENDPOINT_URL_STS": url, "AWS_WEB_IDENTITY_TOKEN_FILE": token,
                         "AWS_ROLE_ARN": "arn:aws:iam::1:role/a"}}
        for path, variables in sources.items():
            with self.subTest(path):
                store = self.store()
                self.finish(store, lines(10), AWS_ACCESS_KEY_ID="", **variables)
                self.assert_exactly_once(store, 10)
                self.assertGreater(asked[path], 3)
        with self.subTest("STS is reached by a proxy"):
            self.start(self.store(), lines(1), AWS_ACCESS_KEY_ID="", HTTPS_PROXY=url,
                       **{**sources["/"], "AWS_ENDPOINT_URL_STS": "https://sts.test"})
            self.wait_for(lambda: asked["sts.test:443"] > 0, "the proxy is not asked")


del Archive

if __name__ == "__main__":
    BUILD = Path(sys.argv.pop(1))
    if "--lives" in sys.argv:
        at = sys.argv.index("--lives")
        LIVES = int(sys.argv.pop(at + 1))
        sys.argv.pop(at)
    unittest.main()
