"""What the built-in tools do. Which of them a request holds is said by the middlewares; here they are carried out."""
