"""Secrets that tell themselves by their form, whatever stands around them: what their issuers publish of it.

Sources: GitHub, "Supported secret scanning patterns"; AWS IAM, "Unique identifiers"; GitLab, "Token overview"; Slack,
"Token types" and "Incoming webhooks"; RFC 7519 (JWT); Microsoft, "Create a service SAS"; the rules of gitleaks.
"""

from __future__ import annotations

import re

_OF_LETTERS = "[A-Za-z0-9]"
# What follows -> what it follows. A digest in hex, the ID of a run, a word of a text is none of these.
_FORMS = {
    # Hugging Face; not a digest in its cache
    rf"(?![0-9a-f]+(?!{_OF_LETTERS})){_OF_LETTERS}{{30,}}": ("hf_",),
    rf"{_OF_LETTERS}{{36,}}": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),  # GitHub
    r"\w{40,}": ("github_pat_",),
    r"[\w.-]{20,}": ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "gloas-", "dckr_pat_", "nvapi-"),
    rf"[A-Z2-7]{{16}}(?!{_OF_LETTERS})": ("AKIA", "ASIA"),  # AWS
    # OpenAI, Anthropic and others of that form
    rf"(?<!{_OF_LETTERS}sk-)(?:(?:proj|svcacct|admin|ant|or)-[\w-]{{20,}}|{_OF_LETTERS}{{32,}})": ("sk-",),
    r"[\w-]{10,}": ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xapp-"),  # Slack
    r"(?<![\w-]eyJ)[\w-]{10,}\.eyJ[\w-]{8,}\.[\w-]{8,}": ("eyJ",),  # a JSON web token
    r"[\w%/+]{40,}(?:={1,2}|%3[Dd])": ("sig=", "AccountKey=", "SharedAccessKey="),  # Azure
    r"[\w@/+-]{8,}": (
        *("hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/"),
        *("discord.com/api/webhooks/", "discordapp.com/api/webhooks/", "webhook.office.com/webhookb2/"),
        *("open.feishu.cn/open-apis/bot/v2/hook/", "open.larksuite.com/open-apis/bot/v2/hook/"),
        "qyapi.weixin.qq.com/cgi-bin/webhook/send?key=",
    ),
}
# Two groups: what stays, for it says what kind of secret it was, and the secret.
TOKENS = tuple(
    re.compile(f"({'|'.join(map(re.escape, beginnings))})({secret})") for secret, beginnings in _FORMS.items()
)
# In lower case: what has none of these in it, has no such secret.
SIGNS_OF_TOKENS = tuple(beginning.lower() for each in _FORMS.values() for beginning in each)
