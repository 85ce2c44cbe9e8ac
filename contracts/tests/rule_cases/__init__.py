"""What breaks each rule, and what comes close to breaking one and doesn't."""
