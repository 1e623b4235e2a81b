package connector

import (
	"fmt"
	"testing"
)

func TestSlack(t *testing.T) {
	t.Parallel()
	tools := declareAll(t, "", slackTools)
	for _, test := range []struct {
		tool, args string
		want       []string
	}{
		{"slack_post_message", `{"channel_id":"C1","text":"hello"}`, []string{"ok=true", "channel=C1", "message.text=hello", "message.thread_ts=<nil>"}},
		{"slack_reply_to_thread", `{"channel_id":"C1","thread_ts":"1700000000.000100","text":"yes"}`, []string{"ok=true", "channel=C1", "message.thread_ts=1700000000.000100", "message.text=yes"}},
		{"slack_add_reaction", `{"channel_id":"C1","timestamp":"1.2","reaction":"eyes"}`, []string{"ok=true"}},
		{"slack_list_channels", `{}`, []string{"ok=true", "channels.0.name=general", "channels.2.name=engineering", "response_metadata.next_cursor="}},
		{"slack_list_channels", `{"limit":1000000}`, []string{"channels.3=<nil>"}},
		{"slack_get_channel_history", `{"channel_id":"C1","limit":1}`, []string{"messages.0.text=Mock message 3", "messages.1=<nil>", "has_more=true"}},
		{"slack_get_thread_replies", `{"channel_id":"C1","thread_ts":"1700000000.000100"}`, []string{"messages.0.ts=1700000000.000100", "messages.0.reply_count=2", "messages.1.ts=1700000060.000100", "messages.2.thread_ts=1700000000.000100"}},
		{"slack_get_thread_replies", `{"channel_id":"C1","thread_ts":"when?"}`, []string{"messages.0.ts=when?"}},
		{"slack_get_users", `{}`, []string{"members.1.profile.email=grace@example.com", "members.1.name=grace"}},
	} {
		t.Run(test.tool+" "+test.args, func(t *testing.T) {
			t.Parallel()
			v, by := ask(t, tools, test.tool, test.args)
			if by != "slack" {
				t.Fatalf("answered by %q", by)
			}
			want(t, v, test.want...)
		})
	}
}

// TestTheAuthorOfAMessageIsAUser: identifiers lead from one answer to the next.
func TestTheAuthorOfAMessageIsAUser(t *testing.T) {
	t.Parallel()
	tools := declareAll(t, "", slackTools)
	channels, _ := ask(t, tools, "slack_list_channels", `{}`)
	history, _ := ask(t, tools, "slack_get_channel_history", fmt.Sprintf(`{"channel_id":%q}`, at(channels, "channels", 1, "id")))
	users, _ := ask(t, tools, "slack_get_users", `{}`)
	by := at(history, "messages", 1, "user")
	if by == nil || by != at(users, "members", 1, "id") {
		t.Errorf("the message is of %v, the users are %v", by, users)
	}
	profile, _ := ask(t, tools, "slack_get_user_profile", fmt.Sprintf(`{"user_id":%q}`, by))
	want(t, profile, "ok=true", "profile.email=grace@example.com")
}
