#!/bin/sh
# A walk through the HTTP API with nothing but curl: make a topic, write, read, follow, share the work of a group.
# KBROKER_URL says where the broker is, if it is not here.
set -eu
url=${KBROKER_URL:-http://127.0.0.1:8080}/api/v1
topic=walk-$$

send() { curl --fail-with-body --silent --show-error -H 'Content-Type: application/json' "$@"; echo; }

echo '# make a topic'
send "$url/topics" -d "{\"name\": \"$topic\", \"partitions\": 2}"

echo '# write: one record, several, and the same request twice'
send "$url/topics/$topic/messages" -d '{"key": "ada", "value": {"amount": 12}}'
send "$url/topics/$topic/messages" -d '[{"key": "bob", "value": {"amount": 7}}, {"key": "ada", "value": {"amount": 30}}]'
for again in 1 2; do
    send "$url/messages" -H "Idempotency-Key: $topic-4" -d "{\"topic\": \"$topic\", \"key\": \"bob\", \"value\": {\"amount\": 5}}"
done

echo '# follow: all that is there, as server-sent events (without maxRecords it would go on for ever)'
curl --silent --no-buffer "$url/topics/$topic/stream?offset=earliest&maxRecords=4"

echo '# follow only what is wanted'
curl --silent --no-buffer --get "$url/topics/$topic/stream" \
    -d offset=earliest -d maxRecords=1 -d whereKey=ada --data-urlencode 'where=$.amount >= 20'

echo '# follow as a member of a group: who comes next goes on where the last one ended'
for member in first second; do
    curl --silent --no-buffer "$url/topics/$topic/stream?group=$topic&offset=earliest&maxRecords=2" | grep '^data: '
done

echo '# tidy up'
send -X DELETE "$url/topics/$topic"
