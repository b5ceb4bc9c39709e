"""The rate limit of messages."""

import time

from suite import section


@section("rate-limit", 5)
def rate_limit(t, api):
    lim = ((api.document or {}).get("rate_limits") or {}).get("messages_per_minute", 60)
    if not isinstance(lim, int) or lim > 400:
        for x in range(5):
            t.skip("message rate limit", "advertised limit is %r" % lim)
        return
    a, b, c = t.contacts("rta", "rtb", "rtc")
    hit, sent, t0 = None, 0, time.time()
    for n in range(lim + 15):
        r = a.send_text(b, "n%d" % n)
        if r.status == 429:
            hit = r
            break
        sent += r.ok
    t.check(
        "core", "a burst above messages_per_minute gets 429", hit is not None, "%d accepted in %.1fs" % (sent, time.time() - t0)
    )
    t.check("core", "not before the advertised limit", sent >= min(lim, 30) - 5, sent)
    t.check(
        "core",
        "429 carries Retry-After or retry_after",
        hit is not None and (hit.headers.get("Retry-After") or hit.obj.get("retry_after") is not None),
        hit,
    )
    t.accept("core", "another identity is not limited", c.send_text(b, "me too"))
    h = api.get("messages/inbox", b.token).headers
    t.check("core", "X-RateLimit-Limit header present", bool(h.get("X-RateLimit-Limit") or h.get("RateLimit-Limit")))
