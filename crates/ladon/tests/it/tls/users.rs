//! Whose user a certificate makes a client.

use super::Door;
use super::client::{BOTH, TlsClient, config};
use crate::live::{bulk, call, error, ok};

#[test]
fn a_certificate_names_its_user() {
    let door = Door::new();
    let (ada, bob) = (door.authority.client("ada"), door.authority.client("bob"));
    let bound = ["--tls-auth-clients", "optional", "--tls-auth-clients-user", "CN"];
    door.on_both(&bound, |server| {
        let mut control = server.connect().expect("connects");
        let set_user = ["ACL", "SETUSER", "ada", "on", ">pw", "~a*", "+get", "+acl|whoami"];
        assert_eq!(call(&mut control, &set_user), ok());
        let connect =
            |identity| TlsClient::connect(door.port(), &config(&door.authority, identity, BOTH));
        let who = |client: &mut TlsClient| client.call(&["ACL", "WHOAMI"]).expect("a reply");
        let mut client = connect(Some(&ada));
        assert_eq!(who(&mut client), bulk("ada"));
        let denied = error("NOPERM No permissions to access a key");
        assert_eq!(client.call(&["GET", "b"]).expect("a reply"), denied);
        // There is no such user, no certificate, or the user is off: the default user.
        assert_eq!(who(&mut connect(Some(&bob))), bulk("default"));
        assert_eq!(who(&mut connect(None)), bulk("default"));
        assert_eq!(call(&mut control, &["ACL", "SETUSER", "ada", "off"]), ok());
        assert_eq!(who(&mut connect(Some(&ada))), bulk("default"));
        assert_eq!(call(&mut control, &["ACL", "SETUSER", "ada", "on"]), ok());
        // Without a password for the default user, only a certificate lets in.
        assert_eq!(call(&mut control, &["CONFIG", "SET", "requirepass", "x"]), ok());
        let refused = error("NOAUTH Authentication required.");
        assert_eq!(who(&mut connect(Some(&bob))), refused);
        assert_eq!(who(&mut connect(Some(&ada))), bulk("ada"));
        // The other name, whose user is named like the URI; or none.
        assert_eq!(call(&mut control, &["CONFIG", "SET", "tls-auth-clients-user", "URI"]), ok());
        assert_eq!(who(&mut connect(Some(&ada))), refused);
        let uri = ["ACL", "SETUSER", "spiffe://test/ada", "on", "+acl|whoami"];
        assert_eq!(call(&mut control, &uri), ok());
        assert_eq!(who(&mut connect(Some(&ada))), bulk("spiffe://test/ada"));
        assert_eq!(call(&mut control, &["CONFIG", "SET", "tls-auth-clients-user", "off"]), ok());
        assert_eq!(who(&mut connect(Some(&ada))), refused);
    });
}
