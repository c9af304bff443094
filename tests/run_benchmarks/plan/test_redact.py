"""Credentials never reach the terminal, the logs or plan.json."""

from __future__ import annotations

import json

import pytest

from run_benchmarks.plan.as_dict import plan_as_dict
from run_benchmarks.plan.redact import (
    redact_argv,
    redact_program,
    redact_text,
    redact_tokens,
    redact_url,
    secrets_in_argv,
    secrets_in_text,
)
from run_benchmarks.plan.secrets import secrets_of
from tests.run_benchmarks.plan.test_bad_input import edit
from tests.run_benchmarks.plan.tree import Tree
from utils.secret_names import is_secret_name


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://bob:secret@host/simple", "https://***@host/simple"),
        ("https://t0ken@host:8443/simple/", "https://***@host:8443/simple/"),
        ("https://bob:a@b@host/simple", "https://***@host/simple"),
        ("http://one@a/ https://two@b/", "http://***@a/ https://***@b/"),
        ("bob:secret@proxy:3128", "***@proxy:3128"),
        ("https_proxy=bob:secret@proxy:3128", "https_proxy=***@proxy:3128"),
        ("https://host/a@b", "https://host/a@b"),
        ("postgresql://bob:a#b/c?d:e@host:5432/x?y=z@w", "postgresql://***@host:5432/x?y=z@w"),
        ("redis://:a#b@[::1]:6379", "redis://***@[::1]:6379"),
        ("s3://u:123456/a@b", "s3://***@b"),
        ("http://h:x/a,http://bob:secret@b", "http://h:x/a,http://***@b"),
        ("https://host:8080/a@b", "https://host:8080/a@b"),
        ("http://[::1]:8080/a@b", "http://[::1]:8080/a@b"),
        (
            f"docker://host:5000/python:3.11@sha256:{'0' * 64}",
            f"docker://host:5000/python:3.11@sha256:{'0' * 64}",
        ),
        (f"docker://python:3.11@sha256:{'0' * 64}", f"docker://python:3.11@sha256:{'0' * 64}"),
        ("toy:pytorch:X1:1:2:1", "toy:pytorch:X1:1:2:1"),
        ("alice@node1", "alice@node1"),
        (f"BASE_IMAGE=python:3.11@sha256:{'0' * 64}", f"BASE_IMAGE=python:3.11@sha256:{'0' * 64}"),
    ],
)
def test_urls(url: str, shown: str) -> None:
    assert redact_url(url) == shown


SECRET_NAMES = [
    *(
        "HF_TOKEN",
        "API_KEY",
        "LICENSE_KEY",
        "SSH_PRIVATE_KEY",
        "DB_PASS",
        "DB_PWD",
        "PGPASSWORD",
        "NETRC_AUTH",
    ),
    *("GH_PAT", "SSHPASS", "X-Api-Key", "db_pass", "AWS_SECRET_ACCESS_KEY", "SSH_PRIVATE_KEY_B64"),
    *(
        "HF_TOKENS",
        "HF_TOKEN2",
        "API_KEYS",
        "AWS_CREDS",
        "DOCKER_AUTH_CONFIG",
        "SIGNING_KEY_PEM",
        "DB_PASS_1",
    ),
    *("ENCRYPTION_KEY_BASE64", "LICENSE_KEY2", "SSHKEY", "JWT", "AUTH_JWT", "KRB5_KEYTAB", "KEYTAB_B64"),
    *("AUTH_HEADER", "SECRETKEY", "secretKey", "DB_PW", "JENKINS_PSW", "HUAWEICLOUD_SDK_SK"),
    "SLACK_WEBHOOK_URL",
    *("PASSWORDS", "DB_PASSWORDS", "GIT_CRED", "PGPASS", "PASSCODE", "ROOTPW", "dbpwd"),
    *(
        "OPENAI__API__KEY",
        "LICENSE__KEY",
        "APP__DB__PASS",
        "NPM_CONFIG__AUTH",
        "npm_config__auth",
        "GITHUB__PAT",
    ),
    *("X_API__KEYS__0", "REDIS__PWD__1", "SIGNING__KEY__PEM", "DOCKER__AUTH__CONFIG", "s3__access__key"),
    *("SERVICE.API.KEY", "service.api.key", "MY.KEY", "CLOUD.SK"),
    *("ENCRYPTION_KEY_V2", "LICENSE_KEYV2", "CLUSTER_SECRETS", "NEXUS_BASICAUTH", "NEXUS_BASIC_AUTH"),
]
OPEN_NAMES = [
    *(
        "PWD",
        "OLDPWD",
        "key",
        "tokens",
        "SSH_PUBLIC_KEY",
        "MAX_TOKENS",
        "num_key_value_heads",
        "tokenizer",
        "SECRETS",
    ),
    *(
        "NCCL_DEBUG",
        "BASE_IMAGE",
        "PATH",
        "monkey",
        "COMPASS",
        "BYPASS",
        "SACRED",
        "PGPASSFILE",
        "KEY_1",
        "SSH_PUBLIC_KEY_PEM",
        "NUM_TOKENS",
    ),
    *(
        "x.token-kind",
        "PASSWORD_LENGTH",
        "secret.version",
        "AUTH_SERVER",
        "PASS_THROUGH",
        "KEYS",
        "SACREDNESS",
    ),
    *("TASK", "NUM_TASK", "PW", "MAX_DISK", "FORBEARERS", "WEBHOOK"),
    *("SSH__PUBLIC__KEY", "SSH.PUBLIC.KEY", "DB__PASSWORD__LENGTH", "__key__", "KEY__1", "max__tokens"),
    *(
        "server.key",
        "private.key",
        "key.py",
        "attention.self.key",
        "Status.PASS",
        "GPU0.PASS",
        "MY.KEYS",
        "DISK.SKU",
    ),
    *("author", "AUTHORIZATION_SERVER", "authorization_url"),
    *("pull_secrets", "SECRETS_MOUNT", "CLUSTER_SECRETS_DIR", "KEY_V2", "basicauth_users"),
]


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_names_that_speak_of_a_secret(name: str) -> None:
    assert is_secret_name(name)
    assert redact_argv([f"-e{name}=a b", "--env", f"{name}=c,d"]) == [f"-e{name}=***", "--env", f"{name}=***"]


@pytest.mark.parametrize("name", OPEN_NAMES)
def test_names_that_do_not(name: str) -> None:
    assert not is_secret_name(name)
    assert redact_text(f"{name}=bert") == f"{name}=bert"


@pytest.mark.parametrize("name", ["AUTHORIZATION", "PROXY_AUTHORIZATION", "http_authorization"])
def test_an_authorization_is_a_secret_with_its_scheme(name: str) -> None:
    secrets = secrets_of((), {"ACCE_CONTAINER_OPT": f"-e '{name}=Basic hunter2secret'"})
    assert is_secret_name(name)
    assert secrets.hide("sent Basic hunter2secret") in ("sent ***", "sent Basic ***")
    assert redact_argv([f"{name}=Basic YTpi x"]) in ([f"{name}=***"], [f"{name}=Basic ***"])


@pytest.mark.parametrize("name", ["PASS", "TOKENS", "KEY", "CRED"])
def test_names_that_speak_of_a_secret_as_a_variables_alone(name: str) -> None:
    """As `KEY=VALUE` in a text it may be anything."""
    assert is_secret_name(name) and is_secret_name(name.lower()) == (name == "CRED")
    secrets = secrets_of((), {"ACCE_CONTAINER_OPT": f"-e {name}=hunter2secret"})
    assert secrets.hide("a rank printed hunter2secret") == "a rank printed ***"


KEY = "MIIEpAIBAAKCAQEAtZm9vYmFy"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("--env=HF_TOKEN=abc", "--env=HF_TOKEN=***"),
        ("{'DB_PASSWORD': 'a, b', 'A': 'b'}", "{'DB_PASSWORD': '***', 'A': 'b'}"),
        ('{"token":"a b","n":1}', '{"token":"***","n":1}'),
        ("tokenizer=bert max_tokens=3", "tokenizer=bert max_tokens=3"),
        ("forward_pass: 3 ms, its host key: x", "forward_pass: 3 ms, its host key: x"),
        ("run -e X_API_KEY='a b' image", "run -e X_API_KEY='***' image"),
        ("run '-eX_API_KEY=a b' image", "run '-eX_API_KEY=***' image"),
        ("run --env='DB_PASS=a'\"'\"'b c' image", "run --env='DB_PASS=***' image"),
        ("a line that is cut off: -e X_API_KEY='a b", "a line that is cut off: -e X_API_KEY='***"),
        ("Authorization: Bearer abc", "Authorization: Bearer ***"),
        ("curl -H 'authorization: basic YTpi' x", "curl -H 'authorization: basic ***' x"),
        ("PROXY_AUTHORIZATION=Basic YTpi x", "PROXY_AUTHORIZATION=Basic *** x"),
        ('{"HTTP_AUTHORIZATION": "Basic YTpi"}', '{"HTTP_AUTHORIZATION": "Basic ***"}'),
        ("sent Bearer eyJhbGciOi.x-y", "sent Bearer ***"),
        ("docker build --secret=id=A,env=A", "docker build --secret=id=A,env=A"),
        ('{"token":5, "password" : "a"}', '{"token":***, "password" : "***"}'),
        ("mounts /root/hf_token:/run/hf_token:ro", "mounts /root/hf_token:/run/hf_token:ro"),
        ("mysql --password 's3 cret' --host h", "mysql --password *** --host h"),
        ("+ wandb login --api-key s3cret", "+ wandb login --api-key ***"),
        (
            "login -u me --password-stdin registry.example.org",
            "login -u me --password-stdin registry.example.org",
        ),
        ("build --secret id=A,env=A --token-file /t", "build --secret id=A,env=A --token-file /t"),
        ("docker build has no --secret option", "docker build has no --secret option"),
        ("ENV HF_TOKEN s3cret", "ENV HF_TOKEN ***"),
        ("machine h login me password s3cret", "machine h login me password ***"),
        ("machine h\n  password s3cret\n", "machine h\n  password ***\n"),
        ("the password is missing", "the password is missing"),
        ("curl -u me:s3cret https://x/y", "curl -u me:*** https://x/y"),
        (
            "docker run -u 1000:1000 --user 0:0 python -u run.py",
            "docker run -u 1000:1000 --user 0:0 python -u run.py",
        ),
        ("Cookie: session=s3cret; lang=en", "Cookie: ***"),
        ("a fortune cookie: none", "a fortune cookie: none"),
        ("passwd:s3cret", "passwd:***"),
        ("mounts passwd:/etc/passwd", "mounts passwd:/etc/passwd"),
        (
            "-v /etc/passwd:/etc/passwd:ro -v /run/db-password:ro",
            "-v /etc/passwd:/etc/passwd:ro -v /run/db-password:ro",
        ),
        ("run --user app:group1 -u root:wheel", "run --user app:group1 -u root:wheel"),
        ("PASS=s3cret", "PASS=***"),
        ("Name=x;AccountKey=s3cret==;Suffix=y", "Name=x;AccountKey=***;Suffix=y"),
        ("PASS=12 FAIL=0", "PASS=12 FAIL=0"),
        ("Driver=x;Uid=u;Pwd=s3,cret;Port=1", "Driver=x;Uid=u;Pwd=***;Port=1"),
        ("PWD={s3 ;cret};Uid=u", "PWD={s3 ;cret};Uid=u"),
        ("Uid=u;PWD={s3 ;cret};Port=1", "Uid=u;PWD=***;Port=1"),
        ("cd x;PWD=/work; PWD=$OLDPWD", "cd x;PWD=/work; PWD=$OLDPWD"),
        ("mount -o ro,username=u,pass=s3cret,x //nas/s", "mount -o ro,username=u,pass=***,x //nas/s"),
        ("--mount volume-opt=o=pass=s3cret,user=u", "--mount volume-opt=o=pass=***,user=u"),
        ("total=5,pass=3,fail=2 forward,pass=1", "total=5,pass=3,fail=2 forward,pass=1"),
        ("https://h/x?a=1&key=s3crets3&b=2", "https://h/x?a=1&key=***&b=2"),
        ("https://h/x?key=s3crets3", "https://h/x?key=***"),
        ("https://h/x?key=accuracy&key=v2", "https://h/x?key=accuracy&key=v2"),
        ('{"auths": {"h": {"auth": "s3cret"}}}', '{"auths": {"h": {"auth": "***"}}}'),
        ("https://h/x?X-Amz-Signature=s3cret&a=1", "https://h/x?X-Amz-Signature=***&a=1"),
        (
            f"-----BEGIN RSA PRIVATE KEY-----\\n{KEY}\\nshort=\\n-----END",
            r"-----BEGIN RSA PRIVATE KEY-----***\n-----END",
        ),
        (
            f"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n{KEY}\n=aBcD\n-----END",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----***\n-----END",
        ),
        ("no -----BEGIN RSA PRIVATE KEY----- in file x", "no -----BEGIN RSA PRIVATE KEY----- in file x"),
        ("+ sshpass -v -p 's3 cret' ssh -p 22 h", "+ sshpass -v -p *** ssh -p 22 h"),
        ("sshpass -e ssh -p 22 h", "sshpass -e ssh -p 22 h"),
        ("docker login -u me -p s3cret r.example.org", "docker login -u me -p *** r.example.org"),
        ("wandb login --relogin s3cret123", "wandb login --relogin ***"),
        ("wandb login failed: run wandb login --help", "wandb login failed: run wandb login --help"),
        ("<Password>s3 cret</Password><user>me</user>", "<Password>***</Password><user>me</user>"),
        ("<a:token type='x'><![CDATA[s3cret]]></a:token>", "<a:token type='x'><![CDATA[***]]></a:token>"),
        ("vector<Token> tokens; a < b", "vector<Token> tokens; a < b"),
        ("KEYTAB=BQIAAABT", "KEYTAB=***"),
        ("/etc/krb5.keytab: no such file", "/etc/krb5.keytab: no such file"),
    ],
)
def test_assignments(text: str, shown: str) -> None:
    assert redact_text(text) == shown


LONG = "".join(map(str, range(30)))  # beside letters, of a length that every form takes
TOKENS = {
    "hf_": f"Ab{LONG}",
    "ghp_": LONG,
    "github_pat_": f"11A_{LONG}",
    "glpat-": "z_sx-tr.Axxr8x1TPY8Y",
    "AKIA": "IOSFODNN7EXAMPLQ",
    "sk-": f"proj-{LONG}",
    "xoxb-": "123-456-aBcDeF",
    "eyJ": "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmN",
    "https://hooks.slack.com/services/": "T000/B000/XXXX",
    "https://discord.com/api/webhooks/": "123/abc-DEF",
    "?sv=2024-01-01&sp=r&sig=": f"{LONG}%2F%3D",
    "AccountKey=": f"{LONG}+/==",
}
DIGEST = "0123456789abcdef" * 4


@pytest.mark.parametrize(("sign", "secret"), TOKENS.items(), ids=TOKENS)
def test_a_token_is_hidden_by_its_own_form_wherever_it_stands(sign: str, secret: str) -> None:
    for before, after in (
        ("", ""),
        ("a rank printed ", " to its log"),
        ('{"x": ["', '"]}'),
        ("pull('", "')"),
    ):
        text, shown = f"{before}{sign}{secret}{after}", f"{before}{sign}***{after}"
        assert redact_text(text) == redact_program(text) == shown
        assert redact_tokens(text) == shown
        assert redact_argv(["run", text]) == ["run", shown]
        assert secret in secrets_in_text(text) and secret in secrets_in_argv(["run", text])


@pytest.mark.parametrize(
    "text",
    [
        f"sha256:{DIGEST} {DIGEST[:40]} run20260102030405-abcdef GPU-5ab3d36e-1234-5678-9abc-0123456789ab",
        f"hf_{DIGEST} in the cache, sig={DIGEST}, task-{DIGEST} on disk-{DIGEST}",
        "hf_hub_download hf_transfer ghp_ sk-learn-contrib-of-some-length akia eyJhbGciOi.x-y",
        "github_pat_ is expected, e.g. glpat-... or xoxb-...; see https://hooks.slack.com/services/",
        "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    ],
)
def test_what_looks_like_a_token_and_is_none_stays(text: str) -> None:
    assert redact_text(text) == redact_program(text) == redact_tokens(text) == text
    assert redact_argv([text]) == [text]


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["run", "--env", "HF_TOKEN=a b c", "x"], ["run", "--env", "HF_TOKEN=***", "x"]),
        (['PASSWORD=p"q,rest', "x"], ["PASSWORD=***", "x"]),
        (["--env=API_KEY=a\nb", "x"], ["--env=API_KEY=***", "x"]),
        (["--token", "abc", "--password", "abc", "x"], ["--token", "***", "--password", "***", "x"]),
        (["--max-tokens", "3", "--tokenizer", "bert"], ["--max-tokens", "3", "--tokenizer", "bert"]),
        (["pull", "https://bob:a@host/x"], ["pull", "https://***@host/x"]),
        (["-e", "DB=pg+x://bob:a 'b\"#c@host/x"], ["-e", "DB=pg+x://***@host/x"]),
        (["curl http://h:80 a@b", "http://h:80 a@b"], ["curl http://h:80 a@b", "http://h:80 a@b"]),
    ],
)
def test_each_argument_of_a_command_is_hidden_to_its_end(argv: list[str], shown: list[str]) -> None:
    assert redact_argv(argv) == shown


def test_of_what_is_hidden_the_secret_itself_is_had() -> None:
    texts = {
        "mysql --password 's3 cret'": ["s3 cret"],
        "Set-Cookie: sid=s3cret; Path=/": ["s3cret", "/"],
        "curl -s --user me:s3cret x": ["s3cret"],
        "pg://me:s3#cret@h": ["me:s3#cret", "s3#cret"],
        "Uid=u;PWD={s3 ;cret};Port=1": ["s3 ;cret"],
        f"-----BEGIN PRIVATE KEY-----\\n{KEY}\\n{KEY}2\\n-----END": [KEY, f"{KEY}2"],
    }
    for text, secrets in texts.items():
        assert list(secrets_in_text(text)) == secrets


def test_what_is_hidden_in_a_command_stays_as_it_is_in_a_message() -> None:
    assert redact_text("x --env 'HF_TOKEN=***' y") == "x --env 'HF_TOKEN=***' y"


def test_a_long_line_is_looked_at_once() -> None:
    """Evidence of a failure may be one line of nothing but the characters of a name."""
    for word in (
        "-",
        "a-",
        "x@",
        "a:",
        "token",
        "-token",
        "token-",
        "a_key_",
        "a__key__",
        "_KEY",
        "__KEY",
        "A.KEY.",
        "._",
        "_authorization",
        "=a:",
        "://a:",
        "://a:b#",
        "user=",
        "-o a,",
        "?key=",
        "a=b:",
        " token",
        " --token",
        " login password ",
        "curl -u a ",
        "cookie: a",
        "password",
        "-----BEGIN PRIVATE KEY-----\n",
        "wandb login --a ",
        "sshpass -v ",
        "docker login ",
        "<token ",
        "<token>",
        "eyJ",
        "sk-",
        "hf_",
    ):
        line = word * (40_000 // len(word))
        assert redact_text(line) == line
        assert redact_argv([line]) == [line]


def test_a_long_value_is_looked_at_once() -> None:
    """What ends a list may stand in it many times, and not end it."""
    assert redact_text("token=" + "," * 200_000 + "x y") == "token=*** y"
    assert redact_text("token=" + "x" + "," * 200_000) == "token=***" + "," * 200_000


def test_plan_as_dict_is_json_without_secrets(tree: Tree) -> None:
    edit(
        tree,
        "test_conf.py",
        "",
        "PIP_SOURCE = 'https://bob:hunter2@mirror.example.org/simple'\n"
        "IMAGE_BUILD_ARGS = {'HF_TOKEN': 'hunter2', 'PROXY': 'http://bob:hunter2@p:1', 'BASE_IMAGE': 'b:1'}\n"
        "ACCE_CONTAINER_OPT = '--gpus all --env \"HF_TOKEN=a hunter2\" -e PIN=12 -e OPEN=1'\n"
        "SECRETS = ['PIN']\n",
    )
    plan = tree.load()
    text = json.dumps(plan_as_dict(plan), allow_nan=False)
    assert "hunter2" not in text
    content = json.loads(text)
    assert content["run"]["pip"]["options"] == {"index-url": "https://***@mirror.example.org/simple"}
    shown = {"HF_TOKEN": "***", "PROXY": "http://***@p:1", "BASE_IMAGE": "b:1"}
    assert content["cases"][0]["image_build_args"] == shown
    options = ["--gpus", "all", "-e", "OPEN=1", "--env=HF_TOKEN=***", "--env=PIN=***"]
    assert content["cases"][0]["container_options"] == options
    assert content["run"]["log_path"] == str(plan.run.log_path)
    assert content["cluster"]["hosts"] == ["node1", "node2"]
    assert content["cases"][0]["settings"]["name"] == "toy:pytorch:X1:1:2:1"
    assert content["cases"][0]["parameters"]["train_batch_size"] == 16
    assert content["cases"][0]["chip"]["peak_flops"] == {"bf16": 1e14}
    assert content["cases"][0]["vendor"]["parse_devices"] == "parse_device_list"
    assert "secrets" not in content
    assert plan.cases[0].image_build_args["HF_TOKEN"] == "hunter2", "the plan itself is what is run"
