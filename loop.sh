for i in $(seq $1); do bash one.sh fork at $((1+(RANDOM%400))); done
