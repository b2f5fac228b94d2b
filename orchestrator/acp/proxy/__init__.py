"""The proxy: any ACP client, any ACP agent, and the turn machine between them.

What needs no decision passes as it came.  A prompt is a turn of the runner: `relay` routes frames,
`conversation` is the runner's agent for one session, `ending` says how a turn's end is told.
There is no policy here.
"""
