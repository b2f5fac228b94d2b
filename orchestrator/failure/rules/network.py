"""The way to the provider, in words: names, sockets, TLS, proxies, cut streams."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.rule import Rule, Step, forbid, says
from orchestrator.failure.verdict import Cause

_STEP, _LOST = Step.CONNECTION, Kind.CONNECTION_LOST

RULES: Final[tuple[Rule, ...]] = (
    says(
        "tls.certificate",
        _STEP,
        Kind.TLS_FAILURE,
        r"\bself[- ]signed certificate\b|\bself_signed_cert_in_chain\b",
        r"\bdepth_zero_self_signed_cert\b",
        (
            r"\bunable to (?:get|verify) (?:the )?(?:local )?(?:issuer|first"
            r"|leaf)\b.{0,20}certificate\b"
        ),
        r"\bunable_to_get_issuer_cert\w*\b|\bunable_to_verify_leaf_signature\b",
        r"\bcertificate[_ ]verif\w+[_ ]failed\b|\bcertificate (?:has )?expired\b",
        r"\bcert_has_expired\b|\bcert_not_yet_valid\b",
        (
            r"\b(?:x509|certificate): (?:certificate )?(?:signed by unknown authority|has expired"
            r"|is not valid|is valid for|cannot validate)"
        ),
        r"\binvalid peer certificate\b|\bunknownissuer\b",
        r"\bpkix path (?:building|validation) failed\b|\bvalid certification path\b",
        r"\bcert(?:ificate)?_?common_?name_?invalid\b|\berr_cert_\w+\b",
        r"\berr_tls_cert_altname_invalid\b",
        r"\bhostname/ip does not match certificate\b|\bhostname .{0,80}doesn't match\b",
        r"\bcertificate (?:is )?not (?:yet valid|trusted)\b",
        r"\bunknown (?:ca|certificate authority)\b",
        (
            r"\bcertificate chain\b.{0,60}(?:not trusted|untrusted|could not be verified"
            r"|terminated in a root)"
        ),
        cause=Cause.TLS,
        priority=20,
    ),
    says(
        "tls.handshake",
        _STEP,
        Kind.TLS_FAILURE,
        r"\bssl: wrong[_ ]version[_ ]number\b|\bwrong version number\b|\btlsv1 alert\b",
        r"\bsslv3 alert handshake failure\b|\bhandshake[ _]failure\b",
        r"\bfatal alert: (?:protocol_version|unknown_ca|\w*certificate\w*|unrecognized_name)\b",
        # Windows' own TLS, by its texts and by its numbers.
        r"\bmessage received was unexpected or badly formatted\b|\bos error -21468930\d\d\b",
        r"\berr_ssl_(?:protocol_error|version_or_cipher_mismatch|wrong_version_number)\b",
        r"\bunsupported protocol version\b.{0,20}tls",
        (
            r"\btls: (?:protocol version|no supported|handshake failure|internal error|unknown"
            r" certificate)"
        ),
        r"\beproto\b.{0,120}ssl",
        cause=Cause.TLS,
        priority=10,
    ),
    says(
        "tls.other",
        _STEP,
        Kind.TLS_FAILURE,
        r"\b(?:tls|ssl) (?:error|failure)\b|\bsslerror\b|\bsslcertverificationerror\b",
        cause=Cause.TLS,
        priority=-20,
    ),
    forbid(
        "tls.is_no_denial",
        (Kind.AUTH_REQUIRED, Kind.ACCESS_DENIED),
        r"\b(?:self_signed_cert_in_chain|unable_to_get_issuer_cert\w*|certificate_verify_failed)\b",
        r"\bunable to get (?:local )?issuer certificate\b|\bself[- ]signed certificate\b",
    ),
    forbid(
        "proxy.is_no_sign_in",
        (Kind.AUTH_REQUIRED, Kind.ACCESS_DENIED),
        r"\bproxy authentication required\b|\bproxyerror\b|\bunable to connect to proxy\b",
        r"\bcannot connect to proxy\b|\btunnel connection failed\b|\bfrom proxy after connect\b",
        r"\btunneling socket could not be established\b",
        errors=("proxyerror", "clienthttpproxyerror", "clientproxyconnectionerror"),
    ),
    says(
        "proxy.refused",
        _STEP,
        Kind.PROXY_REFUSED,
        r"\bproxy authentication required\b",
        r"\btunnel(?:ing|l?ing)? (?:socket|connection)? ?(?:could not be established|failed)\b",
        (
            r"\bproxy (?:connect|connection|tunnel)\w*\b.{0,60}(?:refused|failed|aborted|403|407"
            r"|error|denied)"
        ),
        r"\bunable to connect to proxy\b|\bcannot connect to proxy\b",
        r"\berr_proxy_connection_failed\b|\berr_tunnel_connection_failed\b",
        r"\b(?:received http code|response) \d{3} from proxy\b|\bproxyerror\b",
        r"\bproxyconnect tcp\b|\bproxy server (?:refused|rejected|returned|denied)",
        r"\bconnect tunnel\b.{0,40}\bfailed\b|\btunnel\w*\b.{0,80}\b407\b",
        # The way to the proxy itself is a way like any other.
        unless=r"\btunnel\w*\b.{0,60}\bcause=(?:getaddrinfo|connect|read|write|socket)\b",
        priority=15,
    ),
    says(
        "net.dns",
        _STEP,
        _LOST,
        r"\beai_again\b|\benotfound\b|\bgetaddrinfo\b|\beai_(?:noname|nodata|fail)\b",
        r"\bname or service not known\b|\btemporary failure in name resolution\b",
        r"\bnodename nor servname\b|\bno address associated with hostname\b",
        r"\bcould not resolve (?:host|hostname|proxy)\b",
        r"\b(?:failed|unable) to resolve\b.{0,40}(?:host|name|address|domain)",
        r"\bname resolution (?:failed|error)\b|\bfailed to lookup address\b",
        r"\bno such host\b|\bdns (?:error|lookup|resolution|server|timeout|failure)\b",
        r"\bcontacting dns servers\b|\bname_not_resolved\b|\bno dns servers\b",
        r"\bhost ?name (?:could not|cannot|can't) be resolved\b|\bno such host is known\b",
        r"\bunknownhostexception\b|\bserver misbehaving\b",
        cause=Cause.DNS,
        priority=8,
    ),
    says(
        "net.refused",
        _STEP,
        _LOST,
        r"\beconnrefused\b|\bconnection(?: was)? refused\b|\bactively refused\b",
        r"\bwinerror 10061\b|\bos error (?:111|61|10061)\b|\berrno (?:111|61)\b",
        r"\bconnection_refused\b|\bconnectionrefused(?:error)?\b|\bconnrefused\b",
        cause=Cause.REFUSED,
        priority=7,
    ),
    says(
        "net.reset",
        _STEP,
        _LOST,
        r"\beconnreset\b|\beconnaborted\b",
        r"\bconnection (?:was |has been |is )?(?:forcibly |unexpectedly )?(?:reset|aborted)\b",
        r"\bforcibly closed\b|\bwinerror 1005[34]\b|\bos error (?:104|54|10054|10053)\b",
        r"\berrno (?:104|54)\b|\bconnection_(?:reset|aborted)\b",
        r"\bconnection(?:reset|aborted)(?:error)?\b|\breset by peer\b",
        r"\bsoftware caused connection abort\b|\bstream (?:was )?reset\b|\brst_stream\b",
        r"\bssl_error_syscall\b|\btls handshake eof\b",
        cause=Cause.RESET,
        priority=6,
    ),
    says(
        "net.timeout",
        _STEP,
        _LOST,
        r"\bconnection pool timeout\b|\btimeout waiting for connection\b",
        r"\betimedout\b|\besockettimedout\b|\bconnection (?:attempt )?timed ?out\b",
        r"\bconnect(?:ion)? ?timeout\b",
        r"\btimed out (?:while )?(?:connecting|waiting for|reading)\b|\bread timed out\b",
        r"\brequest timed? ?out\b|\bnetwork timeout\b|\btimeout of \d+ ?ms exceeded\b",
        r"\bheaders ?timeout\b|\bbody ?timeout\b|\bund_err_(?:connect|headers|body)_timeout\b",
        r"\b(?:read|write|pool|connect)timeout(?:error)?\b|\bcontext deadline exceeded\b",
        r"\bhandshake (?:timeout|timed ?out)\b|\bi/o timeout\b|\boperation timed ?out\b",
        r"\bclient\.timeout\b|\berr_(?:connection_)?timed_out\b",
        r"\baborted due to timeout\b|\bos error (?:110|60|10060)\b|\berrno (?:110|60)\b",
        r"\bwinerror 10060\b|\bapitimeouterror\b|\brequest_timeout\b|\bdeadline has elapsed\b",
        r"\b(?:litellm\.)?timeout: |\bupstream request timeout\b",
        r"\bno response (?:received )?(?:after|within|in) \d+ ?(?:s|ms|seconds|minutes)\b",
        r"\b(?:request|connection|operation|call) has timed out\b|\boperation timeout\b",
        r"^(?:error: )?(?:the )?(?:request|connection|operation) timed out\b",
        r"^timeout(?:error)?\b",
        cause=Cause.TIMEOUT,
        priority=5,
    ),
    says(
        "net.unreachable",
        _STEP,
        _LOST,
        r"\behostunreach\b|\benetunreach\b|\benetdown\b|\behostdown\b",
        r"\b(?:network|host) is (?:unreachable|down)\b|\bno route to host\b",
        r"\bnetwork (?:is )?unreachable\b|\bunreachable (?:network|host)\b",
        r"\bos error (?:101|113|10051|10065)\b|\berrno (?:101|113|51|65)\b",
        r"\bwinerror 100(?:51|65)\b|\beaddrnotavail\b",
        (
            r"\berr_(?:internet_disconnected|network_changed|address_unreachable"
            r"|network_access_denied|network_io_suspended)\b"
        ),
        r"\bnot connected to the internet\b|\bno internet(?: connection| access)?\b",
        r"\binternet connection (?:appears to be offline|was lost)\b",
        r"\boffline mode\b.{0,40}network",
        cause=Cause.UNREACHABLE,
        priority=4,
    ),
    says(
        "net.closed",
        _STEP,
        _LOST,
        r"\bsocket hang ?up\b|\bsocket hangup\b|\bother side closed\b|\bund_err_socket\b",
        r"\bsocketerror\b|\bsocket connection was closed\b",
        (
            r"\bconnection (?:was |has been |is )?(?:unexpectedly |abruptly |prematurely )?"
            r"(?:closed|lost|dropped|terminated|interrupted|broken)\b"
        ),
        r"\bserver (?:has )?(?:disconnected|closed the connection)\b",
        r"\babnormal closure\b|\bwebsocket closed:? \(?10(?:0[16]|1[1-4])\b",
        r"\bssl ?engine closed\b",
        r"\bremote host (?:closed connection|terminated the handshake)\b",
        r"\bremote end closed connection\b|\bserver sent goaway\b|\bgoaway\b",
        r"\bpeer closed connection\b|\bconnection_closed\b",
        r"\berr_connection_(?:closed|failed)\b|\berr_empty_response\b",
        r"\bempty reply from server\b|\bunderlying connection was closed\b",
        r"\bserverdisconnected(?:error)?\b|\bremotedisconnected\b|\bremoteprotocolerror\b",
        r"\bconnection error\b|\bconnectionerror\b|\bapi_?connection_?error\b",
        r"\bnewconnectionerror\b|\bclientconnectorerror\b|\bclientoserror\b",
        r"\b(?:read|write|connect)error\b",
        cause=Cause.CLOSED,
        priority=2,
    ),
    says(
        "net.stream_cut",
        _STEP,
        _LOST,
        r"\bincompletemessage\b|\bconnection closed before message completed\b",
        r"\bpremature close\b|\berr_stream_premature_close\b|\bresponse ended prematurely\b",
        r"\bincomplete (?:chunked )?read\b|\bincompleteread\b",
        r"\bunexpected (?:eof|end of (?:file|stream|data))\b|\beof occurred in violation\b",
        r"\b(?:get|post|put|head) \W?https?://[^ ]+: eof$",
        (
            r"\bstream (?:was |has been )?(?:unexpectedly |prematurely )?(?:closed|ended"
            r"|disconnected|terminated|interrupted|cut)\b"
        ),
        r"\bstream error\b",
        r"\b(?:sse|stream|websocket) (?:read )?(?:timed out|idle timeout|stalled)\b",
        r"\bchunkedencodingerror\b|\bclientpayloaderror\b|\bpayload is not completed\b",
        r"\b(?:request|response) body error\b",
        r"\berror (?:reading|decoding) (?:the )?(?:response|llm response|stream)\b",
        r"\bwebsocket (?:closed|connection (?:closed|lost|failed)|error)\b",
        r"\berr_incomplete_chunked_encoding\b",
        (
            r"\berr_http2_(?:stream_error|protocol_error|stream_cancel|session_error"
            r"|ping_failed)\b"
        ),
        r"\bhttp/2 (?:stream|session)\b.{0,40}(?:error|closed|reset)",
        r"\btransfer closed with .{0,40}remaining\b|\bincomplete_chunked\b",
        r"\btruncated (?:stream|response)\b",
        cause=Cause.STREAM_CUT,
        priority=1,
    ),
    says(
        "net.stalled",
        _STEP,
        _LOST,
        r"\b(?:stream|response|turn|model) (?:has )?(?:stalled|hung)\b",
        (
            r"\bno (?:data|chunks?|events?|bytes|progress) (?:were |was )?(?:received )?(?:for|in"
            r"|within|after) \d+\b"
        ),
        r"\bidle timeout\b|\bstream idle\b",
        cause=Cause.STALLED,
        priority=3,
    ),
    says(
        "net.failed",
        _STEP,
        _LOST,
        r"\bfetch failed\b|\bfailed to fetch\b|\bnetwork ?error\b|\bnetworkerror\b",
        r"\brequest to https?://\S+ failed, reason: ",
        r"\berr_network\b|\berror sending request\b|\bfailed to send (?:the )?request\b\.?$",
        r"\bnet::err_(?:failed|network\w*|internet\w*|connection\w*|address\w*|timed_out)\b",
        r"\b(?:unable|failed) to connect\b",
        r"\b(?:could not|couldn't|cannot|can't) (?:connect|reach)\b",
        r"\bnetwork (?:connection|request) (?:failed|lost|error|interrupted)\b|\bio error: ",
        r"\bi/o error\b|\btransport error\b|\bhttp error sending\b|\bwsarecv\b|\bwsasend\b",
        r"\bload failed$|\bsocket exception\b|\bsocketexception\b",
        r"\bhttpclientconnectionfailure\b",
        r"(?:^|: )terminated(?: at |$|: )",
        priority=-10,
    ),
    Rule(
        "net.stream_cut_and_no_more",
        Step.REQUEST,
        _LOST,
        facts=(("wrapper", "stream_cut"),),
        priority=-50,
        cause=Cause.STREAM_CUT,
    ),
    forbid(
        "auth.is_network",
        (Kind.AUTH_REQUIRED,),
        (
            r"\boauth error: (?:timeout of|the socket|fetch failed|network|connect|socket|read"
            r"|getaddrinfo|unable to connect)"
        ),
        r"\bauth error: 5\d\d\b|\bcircuit_open\b",
        priority=40,
    ),
)
