# The tag is the version of @cloudflare/sandbox in package.json; a test compares them.
FROM docker.io/cloudflare/sandbox:0.12.10
