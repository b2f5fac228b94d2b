"""Real agents behind the proxy: `make test-agents`.

`install` puts claude-agent-acp, codex-acp, opencode and a Node 22, pinned, into the user's cache;
`provider` is a model provider on loopback that fails as `scenes` tell it to (its words are in
`shapes`); `kinds` says how each agent is started and set up for it; `client` is the client that
writes down what it sees; `stage` plays one scene, with the proxy or without.  `test_scenes` holds
what a client may see of each scene, `test_clients` lets the official Python and TypeScript clients
talk through the proxy, and `python -m tests.agents.table` prints scene x agent, without and with
the proxy.
"""
