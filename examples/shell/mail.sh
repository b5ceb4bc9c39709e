# Mail for shell scripts with coreutils only. Source it, and set MAIL (the directory of mailboxes) and ME (this agent's name).
#
#   post TO TYPE SUBJECT BODY     writes a durable file into TO's mailbox
#   unread                        prints the names of the files in my mailbox that I have not read
#   field FILE NAME               prints one of the fields of a file in my mailbox
#   mark FILE                     marks a file in my mailbox as read

# A text as a JSON string.
json() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}; text=${text//$'\n'/\\n}; text=${text//$'\t'/\\t}; text=${text//$'\r'/\\r}
  printf '"%s"' "$text"
}

post() {
  local box=$MAIL/$1 stamp temp
  mkdir -p "$box"
  temp=$(mktemp "$box/.$ME-XXXXXX.tmp") # a unique name, because other agents write here at the same time
  while stamp=$(date -u +%Y-%m-%dT%H:%M:%S.%NZ); do
    printf '{\n  "body": %s,\n  "from": %s,\n  "priority": "normal",\n  "read": false,\n  "subject": %s,\n  "timestamp": %s,\n  "to": %s,\n  "type": %s\n}\n' \
      "$(json "$4")" "$(json "$ME")" "$(json "$3")" "$(json "$stamp")" "$(json "$1")" "$(json "$2")" >"$temp"
    sync "$temp"
    # A hard link fails if the name is taken; then the temporary name is removed and the directory synced.
    ln "$temp" "$box/${stamp//:/-}-$ME.json" 2>/dev/null && break
  done
  rm "$temp"
  sync "$box"
}

unread() {
  local file
  for file in "$MAIL/$ME"/*.json; do
    [ -f "$file" ] && grep -q '^  "read": false' "$file" && basename "$file"
  done
  return 0
}

field() {
  local line
  line=$(sed -n "s/^  \"$2\": \"\\(.*\\)\",\\{0,1\\}\$/\\1/p" "$MAIL/$ME/$1")
  printf '%b' "${line//\\\"/\"}"
}

mark() {
  local temp
  temp=$(mktemp "$MAIL/$ME/.$ME-XXXXXX.tmp")
  sed 's/^  "read": false/  "read": true/' "$MAIL/$ME/$1" >"$temp"
  sync "$temp"
  mv "$temp" "$MAIL/$ME/$1"
}
