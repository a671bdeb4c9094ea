"""What the methods are for: crowds, rankings, best pairs, kernel maps, leaderboards."""
